"""What this machine is: one Hardware record out of several probes."""
