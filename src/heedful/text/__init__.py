"""What a text file may be: lines, columns, translation memories, test sets."""
