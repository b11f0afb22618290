"""Collected and packed data on real daemons: the same however it was made, and explained."""
