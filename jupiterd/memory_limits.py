"""How much of this machine's memory a process here may use.

Owns what counts: the machine itself, and the limits of its control group, as containers and
services have them. Doesn't know accelerators.
"""

import psutil

from jupiterd import control_group


def memory_bytes() -> int:
    """Return how much memory there is, for this process and those that it starts together."""
    total, limit = psutil.virtual_memory().total, control_group.memory_limit_bytes()
    return total if limit is None else min(total, limit)


def free_memory_bytes() -> int:
    """Return how much of it nobody uses."""
    available, left = psutil.virtual_memory().available, control_group.free_memory_bytes()
    return available if left is None else min(available, left)


def used_memory_bytes() -> int:
    """Return how much of it is in use."""
    return max(0, memory_bytes() - free_memory_bytes())


def memory_percent() -> float:
    """Return the same as a share of all there is."""
    return round(100 * used_memory_bytes() / memory_bytes(), 1)
