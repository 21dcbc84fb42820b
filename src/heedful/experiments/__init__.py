"""Experiments: a plan of steps, trainings that resume, records of what was measured, and pages."""
