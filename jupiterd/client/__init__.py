"""The channel to the local daemon, shared by jupiterctl and jupiter-tui."""
