"""Programs of a few lines that a bare Python runs by their path; nobody imports them."""
