"""How people want a model shared out over ranks, as the settings of a run or a cycle say.

Owns reading what was recorded. Pure. Doesn't know what fits (`cycle.training.partition`).

A stage is recorded where people have said one, and `auto` where the model was cut, or may be, when
the run was asked for: whoever leads cuts it then wherever members don't hold it whole.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.training.memory_limits import MemoryLimits, read

SHARD: Final = "shard"
MEMORY: Final = "memory"
"""What settings call either; absent: nothing was said."""

AUTO, OFF = "auto", "off"


def asked_shard(run: CycleState) -> str:
    """Return `auto` or a stage where the model of a run or cycle may be cut; else empty."""
    said = str(_settings(run).get(SHARD) or "")
    return "" if said == OFF else said


def memory_limits(run: CycleState) -> MemoryLimits:
    """Return what a run or cycle may use of each member's memory; others have no limit."""
    return read(str(_settings(run).get(MEMORY) or ""))


def _settings(run: CycleState) -> Mapping[str, Any]:
    asked = run.training or run.started
    return {} if asked is None else asked.settings
