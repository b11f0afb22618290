"""Where a training that was stopped or failed has got to, and where that lies.

Owns the line. Doesn't know who has which checkpoint: the daemon's document says so.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from jupiterd.errors import JupiterError
from jupiterd.formats import plain
from jupiterd.ids import short

CHECKPOINTS: Final = "checkpoints"
AT_REST: Final = frozenset({"stopped", "failed"})

Row = Mapping[str, Any]


def checkpoints_of(state_dir: Path, run: Row | None, views: Mapping[str, Any]) -> Row | None:
    """Return the document of a run's checkpoints, if it rests; None where nobody has it."""
    if not run or run.get("state") not in AT_REST:
        return None
    if CHECKPOINTS in views:
        return views[CHECKPOINTS]
    from jupiterd.ctl.calls import ask_over_grpc

    with suppress(JupiterError, KeyError):
        return ask_over_grpc(state_dir, f"{CHECKPOINTS}/{run['id']}")[CHECKPOINTS]
    return None


def last_step_line(run: Row, checkpoints: Row | None) -> str:
    """Say which step was kept last, with what loss, and who has it."""
    rows: Sequence[Row] = (checkpoints or {}).get("rows") or ()
    if not rows and not run.get("step"):
        return "last step: none was kept, so that it would begin anew"
    last = rows[0] if rows else run
    loss = last.get("loss")
    said = f"last step: {last['step']:,}" + ("" if loss is None else f", loss {loss:.4f}")
    return f"{said}; {_place(rows[0])}" if rows else said


def _place(row: Row) -> str:
    names: Sequence[str] = row.get("copies") or ()
    where = f"on {', '.join(map(plain, names))}" if names else "on no machine in reach"
    return f"its checkpoint {short(str(row['id']))} is {where}"
