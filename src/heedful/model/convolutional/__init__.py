"""Convolutional encoders and decoders."""
