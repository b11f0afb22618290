"""What must hold, whatever goes wrong."""
