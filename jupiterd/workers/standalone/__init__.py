"""Programs that the Python of somebody's script runs by their path; nobody imports them."""
