"""Training text that repeats held-out text, exactly or nearly."""
