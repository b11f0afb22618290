"""What old rounds of a cycle have made and nobody reads again.

Owns the rule. Doesn't know disks or time, or what is in an output.

Once a round is packed, its text lies four times over: as it was collected, cleaned, kept and in
shards. Who reads what of it later:

| output | read again by |
|---|---|
| documents, state | the next round's collecting |
| train | `why`, where generating kept no `parents`; of older cycles the next round's collecting |
| clean, dropped of one batch | nobody, once they are united |
| kept | `why`, exports, and the judging where the round is trained again from an earlier leaf |
| holdout, plan, dropped, skipped | every later round, or people; they are small |
| samples, parents | the filters of every later round; `why` |
| tokenizer, shards | training; `why`; the proof of a purge |
| scores, verdict | the gate, audits |

So `documents`, `train`, `state` and cleaned batches of a round go once enough later rounds are
packed. It is packing that counts and not the verdict: who goes back to an earlier leaf finds the
work of later rounds done, and goes on behind the last one that was packed.
"""

from collections.abc import Collection, Iterator
from typing import Final

from jupiterd.cluster.artifacts.retention import texts
from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.ledger.cycle_state import PREPARING, CycleState
from jupiterd.ids import ArtifactId

LEAST_ROUNDS: Final = 1
"""The newest packed round is always whole: the next one's collecting begins with what it found."""

_COLLECTING: Final = "collect"
_GENERATING: Final = "generate"
_FILTERING: Final = "filter"


def outlived(cycles: Collection[CycleState], rounds_kept: int) -> frozenset[ArtifactId]:
    """Return what may go of all rounds but the last so many of each cycle."""
    passing = [(cycle, Passing(cycle, rounds_kept)) for cycle in cycles]
    going = frozenset(each for cycle, rule in passing for each in rule.of(cycle))
    if not going:
        return going
    return going.difference(*(_named(cycle, rule) for cycle, rule in passing))


class Passing:
    """Which outputs of one cycle's work nobody reads again."""

    def __init__(self, cycle: CycleState, rounds_kept: int = LEAST_ROUNDS) -> None:
        done = cycle.completed.values() if cycle.started is not None else ()
        packed = max((fact.round for fact in done if fact.phase == PREPARING), default=0)
        self._last = packed - max(LEAST_ROUNDS, rounds_kept)
        self._rounds_without_parents = {
            fact.round
            for fact in done
            if fact.phase == _GENERATING and "parents" not in fact.outputs
        }
        """Rounds whose made samples have parents that may lie in `train` alone."""

    def of(self, cycle: CycleState) -> Iterator[ArtifactId]:
        """Yield the artifacts, whatever else names them."""
        for fact in cycle.completed.values():
            yield from (fact.outputs[name] for name in self.names(fact))

    def names(self, fact: WorkCompleted) -> frozenset[str]:
        """Return the names of those outputs of one piece of work."""
        if fact.round > self._last:
            return frozenset()
        if fact.phase in {_COLLECTING, _FILTERING} and "clean" in fact.outputs:
            return frozenset(fact.outputs)
        if fact.phase != _COLLECTING:
            return frozenset()
        parents_of = set[str]() if fact.round in self._rounds_without_parents else {"train"}
        return frozenset({"documents", "state", *parents_of} & fact.outputs.keys())


def _named(cycle: CycleState, rule: Passing) -> Iterator[str]:
    """Yield every text in a cycle's facts but the names of outputs that pass."""
    for _, fact in cycle.placed():
        if isinstance(fact, WorkCompleted):
            going = rule.names(fact)
            yield from (each for name, each in fact.outputs.items() if name not in going)
            yield from texts(fact, without="outputs")
        else:
            yield from texts(fact)
