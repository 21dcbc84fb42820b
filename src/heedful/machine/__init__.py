"""The machine: processors, memory, and devices."""
