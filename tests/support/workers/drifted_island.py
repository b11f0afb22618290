"""An island whose weights or momentum differ from those of all by one bit.

Owns the flip. Doesn't know what comes of it.
"""

from typing import Any

import numpy as np
import pytest

from jupiterd.errors import IslandLeftOutError
from jupiterd.workers.islands.island import IslandView as OuterIsland
from jupiterd.workers.islands.outer_step import OuterState


def drift(
    monkeypatch: pytest.MonkeyPatch, name: str, number: int, what: str, ends_at: int = 0
) -> None:
    """Let an island get one bit of the weights or the momentum wrong, once, in an outer step.

    ends_at: the step at which it is ended
    """
    merged, done = OuterIsland.merged, set[int]()

    def merged_wrongly(island: OuterIsland, *given: Any) -> OuterState:
        state, last = merged(island, *given), island.last
        at = -1 if last is None or last.island != name else last.number + 1
        if at in done:
            return state
        done.add(at)
        if at == number:
            getattr(state, what).view(np.uint32)[7] ^= 1 << 20
        if at == ends_at > 0:
            raise IslandLeftOutError("its way was left out")
        return state

    monkeypatch.setattr(OuterIsland, "merged", merged_wrongly)
