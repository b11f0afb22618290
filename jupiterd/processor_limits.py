"""On how many processors a process here may compute.

Owns what counts: what this process was bound to (a cpuset shows in that), and the quota of its
control group, as containers and services have one. Imports little: short commands wait for it.
"""

import math
import os
import sys

from jupiterd import control_group


def usable_cores() -> int:
    """Return on how many cores this process may compute, a part of one counted as one."""
    if sys.platform == "linux":
        bound = len(os.sched_getaffinity(0))
    else:
        bound = os.cpu_count() or 1
    quota = control_group.processors()
    return bound if quota is None else max(1, min(bound, math.ceil(quota)))
