"""Reproductions of the paper's figures and claims."""
