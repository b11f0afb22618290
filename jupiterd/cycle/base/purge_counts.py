"""What finished work says of purges, in its counts; a source's name or address follows each.

Owns these names. Knows nothing else, so that an idle daemon can read them.
"""

PURGED_COUNT = "in_shards:"
"""In the counts of packing: samples of that source among those that were packed."""

LEFT_OUT_COUNT = "left_out:"
"""In the counts of collecting, uniting and packing: samples of that source left out there."""

NOT_COLLECTED_COUNT = "not_collected:"
"""In the counts of collecting: it was purged, and nothing fetched of it."""
