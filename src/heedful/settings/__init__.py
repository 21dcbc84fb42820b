"""What a setting is: its type and range, when it acts, the table it stands in. Needs no torch."""
