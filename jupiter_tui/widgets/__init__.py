"""The widgets that every screen is made of."""
