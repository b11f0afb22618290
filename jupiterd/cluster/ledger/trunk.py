"""The trunk of a cycle: one training at a constant rate, which round after round goes on with.

    warm-up -> t1 --------> t2 --------> t3 ...      the trunk
               '-> d1       '-> d2       '-> d3      each round's branch, which is judged

Owns where a round begins. Doesn't know rates or steps: a checkpoint says whether it is on the
trunk. A round's checkpoints hang below the commit of the round before all the same, whatever they
were loaded from.

1. A round that has begun goes on as it began.
2. Else it goes on from the trunk's end in the last round that was good: weights, moments and all.
   What the gate says doesn't matter: it decides who generates. The trunk has learned from real
   text and a capped share of synthetic text, and a candidate that wins nothing is worth going on
   with.
3. But a round is good only if its candidate isn't worse than the best of the good ones before it
   by more than WORSE_BY_BPB; what it has trained is left behind. Nothing known counts as good.
4. Where there is no such end (islands have trained that round, it is of an older version, or can't
   be had), the round takes the weights of the last candidate alone.
"""

from collections.abc import Iterator
from typing import Final

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.ids import ArtifactId

WORSE_BY_BPB: Final = 0.02
"""Bits per byte on held-out text; the gate lets no kind of text get worse by more than that."""

_ENDS_RETAINED: Final = 2
"""Ends of each line's trunk that nobody gives up: the last one, and the one it came from."""


def trunk_of(cycle: CycleState, round_number: int) -> str:
    """Return the checkpoint of an earlier round with whose trunk a round goes on; or empty."""
    begun = next(
        (checkpoint for checkpoint in _line(cycle) if checkpoint.round == round_number), None
    )
    if begun is not None:
        return _loaded(cycle, begun)
    end = _end(cycle, last_good_round(cycle, round_number))
    return "" if end is None or end.artifact in cycle.suspended else end.artifact


def start_of(cycle: CycleState, round_number: int) -> str:
    """Return the checkpoint that a round's gang begins with; empty where weights are drawn."""
    return trunk_of(cycle, round_number) or cycle.start_of(round_number)


def last_good_round(cycle: CycleState, round_number: int) -> int:
    """Return the last round before this one with whose trunk training goes on; 0 for none."""
    found, best = 0, 0.0
    for number in range(1, round_number):
        verdict = cycle.verdicts.get(number)
        bpb = 0.0 if verdict is None else verdict.val_bpb
        if not bpb or not best or bpb <= best + WORSE_BY_BPB:
            found, best = number, min(filter(None, (best, bpb)), default=0.0)
    return found


def trunk_ends(cycle: CycleState) -> frozenset[str]:
    """Return the ends of trunks that are kept: a round of some line may yet go on from them."""
    known = {checkpoint.artifact: checkpoint for checkpoint in _all(cycle)}
    retained = {trunk_of(cycle, cycle.rounds_committed + 1)}
    for leaf in cycle.leaves():
        ends: dict[int, str] = {}
        at: CheckpointCommitted | None = leaf.checkpoint
        while at is not None and len(ends) <= _ENDS_RETAINED:
            if at.on_trunk:
                ends.setdefault(at.round, at.artifact)
            at = known.get(ArtifactId(at.parent))
        retained.update([*ends.values()][:_ENDS_RETAINED])
    return frozenset(retained)


def _loaded(cycle: CycleState, begun: CheckpointCommitted) -> str:
    """Return what the gang had loaded that made a round's first checkpoint, if it is on a trunk.

    Only of checkpoints that older versions wrote the attempt must tell it.
    """
    opened = cycle.attempts_opened.get(begun.attempt)
    of_attempt = "" if opened is None else opened.from_checkpoint
    loaded = cycle.checkpoint(begun.began_with or of_attempt)
    is_trunk = loaded is not None and loaded.on_trunk and loaded.round < begun.round
    return loaded.artifact if loaded is not None and is_trunk else ""


def _end(cycle: CycleState, round_number: int) -> CheckpointCommitted | None:
    found = (
        checkpoint
        for checkpoint in _line(cycle)
        if checkpoint.round == round_number and checkpoint.on_trunk
    )
    return max(found, key=lambda checkpoint: checkpoint.step, default=None)


def _line(cycle: CycleState) -> Iterator[CheckpointCommitted]:
    return (fact for fact in cycle.canonical_branch() if isinstance(fact, CheckpointCommitted))


def _all(cycle: CycleState) -> Iterator[CheckpointCommitted]:
    return (fact for _, fact in cycle.placed() if isinstance(fact, CheckpointCommitted))
