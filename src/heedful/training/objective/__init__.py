"""Objectives of training: the likelihood of references, or the risk of own translations."""
