"""The port that anybody may connect to, and the limits on connections of each address."""
