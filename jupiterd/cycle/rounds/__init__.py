"""A cycle's rounds as a whole: what they cost, and what is said of them."""
