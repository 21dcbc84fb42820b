"""Load tests of the server, for the benchmark and for the long tests."""
