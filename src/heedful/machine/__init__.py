"""What this machine has and does well: processors, memory, devices, and which precision is fast."""
