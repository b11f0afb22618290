"""All numbers of a packed pseudo-gradient, for tests that compare them.

Owns putting its chunks together. Doesn't know how it is packed.
"""

import numpy as np

from jupiterd.workers.islands.compression import Packed
from jupiterd.workers.islands.flat import Vector


def restored(pseudo_gradient: Packed, size: int) -> Vector:
    """Return all numbers."""
    numbers = np.empty(size, np.float32)
    for part, some in pseudo_gradient.chunks():
        numbers[part] = some
    return numbers
