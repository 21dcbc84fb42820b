"""Training: loss, learning rate schedule, optimizer and trainer."""
