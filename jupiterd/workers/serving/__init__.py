"""What starts engines that answer, and what they need beside a model's folder."""
