"""What ranks print, drawn on a terminal."""
