"""Who is here, who leads, and who may come in."""
