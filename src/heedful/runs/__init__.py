"""Run folders and checkpoints: format, writing, reading, averaging."""
