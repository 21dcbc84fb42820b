"""Optional C functions for search and training, from the wheel or compiled on this machine."""
