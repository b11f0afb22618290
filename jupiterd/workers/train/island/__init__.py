"""What a rank of an island does beyond its gang: outer rounds, exchanges, the joining ramp."""
