"""Experiments: a plan of steps, training runs that resume, records of measurements, and pages."""
