"""What a run folder holds, and how it is written, read and averaged."""
