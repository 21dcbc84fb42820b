"""The translation server and its web page."""
