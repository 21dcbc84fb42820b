"""What a server does under load, for the benchmark and for the long tests."""
