"""What runs did, cost and score."""
