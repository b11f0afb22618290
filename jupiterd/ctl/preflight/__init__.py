"""What is looked at before anything is spent: sources, and whether they can be judged."""
