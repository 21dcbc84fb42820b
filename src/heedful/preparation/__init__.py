"""Preparation of training data: from text files to ids."""
