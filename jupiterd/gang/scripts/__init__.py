"""What a launched script finds around it: variables, interpreter, devices."""
