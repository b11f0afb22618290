"""One term of a leader: record, place, run an item, replicate."""
