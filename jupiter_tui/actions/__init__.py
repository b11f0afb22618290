"""What the dashboard lets people change, and how it is carried out."""
