"""People's own questions about a domain, and how models' answers to them are graded."""
