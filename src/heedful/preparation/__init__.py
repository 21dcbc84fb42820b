"""From text files to encoded training data."""
