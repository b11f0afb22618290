"""How busy one machine is, beside its accelerators (`gpu_load`): the names of the readings.

Pure. Owns the names. Doesn't know how anything is measured. In heartbeats what isn't known is left
out: members of an older version take every reading for a number.
"""

from collections.abc import Mapping
from typing import Final

LOAD_KEYS: Final = (
    "cpu_percent",  # of all cores
    "cpu_temperature_celsius",
    "ram_percent",
    "ram_used_bytes",  # what isn't available to others, so that it fits the percentage
    "ram_bytes",
    "process_bytes",  # resident: the daemon and all that it has started
    "daemon_rss_bytes",  # the daemon alone
    "workers_rss_bytes",  # the others; memory that they share counts once for each
    "disk_free_bytes",  # for the daemon, where its state folder lies
    "disk_bytes",  # that disk's size
    "throttled_gpus",  # how many run slower because they are too hot
    "loop_lag_s",  # how late the daemon's event loop ran lately, at worst
)

Load = dict[str, float]
"""What is known of these."""


def shown_load(readings: Mapping[str, float]) -> dict[str, float | None]:
    """Return every reading by its name, None where it isn't known; and what newer versions add."""
    return dict.fromkeys(LOAD_KEYS) | dict(readings)
