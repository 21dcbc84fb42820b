"""What a user does from start to end, put together from the parts below."""
