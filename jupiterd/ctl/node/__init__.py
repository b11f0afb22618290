"""`jupiterctl node`: lists, shows, approves, removes and drains machines."""
