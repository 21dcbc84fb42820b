"""What a training minimizes: the likelihood of references, or the risk of own translations."""
