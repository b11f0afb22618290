"""Small students that judge text: what they learn from, their training, and how well they did."""
