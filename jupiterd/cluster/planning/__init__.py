"""Who trains with whom, and what that is predicted to come to."""
