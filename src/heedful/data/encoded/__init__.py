"""Storage of encoded text: shards, worker processes, flat files."""
