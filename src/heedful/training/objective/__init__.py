"""What a training minimises: the likelihood of references, or the risk of own translations."""
