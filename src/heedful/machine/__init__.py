"""The machine: processors, memory, devices, and the fastest precision."""
