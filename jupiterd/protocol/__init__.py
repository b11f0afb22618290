"""What processes of one machine say to each other, and how errors cross a call."""
