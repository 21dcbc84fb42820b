"""How ids come to lie on the disk: shards, processes, flat files."""
