"""Run folders: what they hold, and how it is written, read and averaged."""
