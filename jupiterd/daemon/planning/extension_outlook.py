"""What more rounds of a cycle would take: what its last one took, as often.

Owns these lines. Pure. Doesn't know what a round does, or who will be there for the next.
"""

from collections.abc import Iterator, Mapping

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.trunk import start_of
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.catalog.islands_document import Islands
from jupiterd.daemon.catalog.phase_rows import Rows, phase_rows
from jupiterd.formats import counted, duration, plain
from jupiterd.ids import NodeId, short


def extension_lines(
    cycle: CycleState, islands: Islands, more: int, names: Mapping[NodeId, str]
) -> list[str]:
    """Return what its last round took and who trained it, and what `more` such rounds come to."""
    last = cycle.rounds_committed
    rows = [row for row in phase_rows(cycle, None, islands) if row["round"] == last]
    took_s = sum(row["elapsed_s"] or 0.0 for row in rows)
    if not took_s:
        return ["none of its rounds has ended yet: nobody knows how long one takes"]
    phases = (f"{row['phase']} {duration(row['elapsed_s'])}" for row in rows if row["elapsed_s"])
    return [
        f"round {last} took {duration(took_s)}: {', '.join(phases)}",
        *_training(cycle, islands, rows, names),
        f"{counted(more, 'round')} more like it: ~{duration(more * took_s)}",
    ]


def _training(
    cycle: CycleState, islands: Islands, rows: Rows, names: Mapping[NodeId, str]
) -> Iterator[str]:
    number = cycle.rounds_committed
    made = cycle.last_checkpoint(number)
    if made is None:
        return
    before = cycle.checkpoint(start_of(cycle, number))
    tokens = made.tokens - (0 if before is None else before.tokens)
    rates = (row["values"].get("tokens_per_s") for row in rows if row["phase"] == Phase.TRAIN)
    rate = next(filter(None, rates), None)
    speed = "" if rate is None else f", {rate:,.0f} tokens/s"
    nodes = dict.fromkeys(node for gang in _gangs(cycle, islands, number) for node in gang)
    trained_by = ", ".join(plain(names.get(node) or short(node)) for node in nodes)
    yield f"it trained {counted(made.step, 'step')}, {tokens:,} tokens{speed}, on {trained_by}"


def _gangs(cycle: CycleState, islands: Islands, number: int) -> Iterator[tuple[NodeId, ...]]:
    """Yield who trained a round last: its gang, or that of each island."""
    parts = [state for state, started in islands if started.parent_round == number]
    for each in parts or [cycle]:
        own = [o for o in each.attempts_opened.values() if parts or o.round == number]
        if own:
            yield max(own, key=lambda opened: opened.attempt).gang
