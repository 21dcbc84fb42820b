"""The command line: one file per command parses options, calls one function and prints."""
