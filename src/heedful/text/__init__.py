"""Text formats: lines, columns, translation memories, test sets."""
