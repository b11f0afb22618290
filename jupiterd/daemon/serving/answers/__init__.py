"""What is answered to clients: whole, as a stream, to one prompt or to several."""
