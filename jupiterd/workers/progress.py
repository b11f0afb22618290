"""How work on data and scores tells how far it is.

Owns the shape of that callback. Doesn't know who listens.
"""

from collections.abc import Callable

Progress = Callable[[int, int, str], None]
"""Called with (done, total, unit); a worker passes its task's `progress`.

The total is 0 where nobody knows it.
"""


def silent(_done: int, _total: int, _unit: str) -> None:
    """Tell nobody."""
