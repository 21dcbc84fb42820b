"""Evaluation, comparison and plots of runs."""
