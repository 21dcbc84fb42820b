"""The loss, the schedule and the one loop that trains every model."""
