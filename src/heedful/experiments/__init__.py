"""Experiments: a plan of steps, trainings that resume, records of measurements, and pages."""
