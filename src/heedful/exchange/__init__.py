"""Weights to and from other toolkits; every passage is compared with what it came from."""
