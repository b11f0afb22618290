"""What the dashboard costs while much happens."""
