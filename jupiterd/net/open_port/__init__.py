"""The port that anybody may connect to, and how few connections each may hold there."""
