"""Short programs that a bare Python runs by their path; no module imports them."""
