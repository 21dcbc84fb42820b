"""The command line: one file per command, each parses, calls a workflow and prints."""
