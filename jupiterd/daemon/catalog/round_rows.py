"""The finished rounds of every cycle as rows of cycles.tsv, out of the ledger.

Owns deriving rows from facts. Pure: it gets the state. Every node with the same ledger comes
to the same rows. Each cycle is read in one go, for it may have a thousand rounds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from jupiterd.cluster.facts.facts import CheckpointCommitted, RoundCommitted, WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import counting_islands
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.whole_counts import whole_count
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.counting_verdict import verdict_item
from jupiterd.cycle.rounds.round_table import JUDGED_AT, RoundRow
from jupiterd.daemon.catalog.effective_work import work_that_counts
from jupiterd.daemon.catalog.islands_document import Islands
from jupiterd.ids import CycleId
from jupiterd.protocol.frames import Scalar


def round_rows(state: State) -> list[RoundRow]:
    """Return the rows, those of the oldest cycle first, its first round first."""
    cycles = [each for each in state.cycles.values() if each.started is not None and each.rounds]
    return [
        row
        for cycle in sorted(cycles, key=attrgetter("start_order"))
        for row in _Rounds(cycle, counting_islands(state.cycles, _id(cycle))).rows()
    ]


class _Rounds:
    """The rounds of one cycle."""

    def __init__(self, cycle: CycleState, islands: Islands) -> None:
        self._cycle = cycle
        self._work: dict[int, list[WorkCompleted]] = defaultdict(list)
        for fact in work_that_counts(cycle.completed.values()):
            self._work[fact.round].append(fact)
        self._verdicts = cycle.verdicts
        self._tokens = _trained_tokens(cycle)
        self._training_s = _training_seconds(cycle, islands)

    def rows(self) -> Iterator[RoundRow]:
        named = "" if self._cycle.started is None else self._cycle.started.generator.get("name")
        writer = str(named or "")
        for done in self._cycle.rounds:
            yield self._row(done, writer)
            writer = str(named or done.newest_generator)

    def _row(self, done: RoundCommitted, writer: str) -> RoundRow:
        number, work = done.round, self._work[done.round]
        said, summary = self._verdicts.get(number), _gate_summary(done, work)
        trained_s = {Phase.TRAIN: self._training_s[number]} if number in self._training_s else {}
        return RoundRow(
            date=str(summary.get(JUDGED_AT) or ""),
            cycle=_id(self._cycle),
            domain=self._cycle.label,
            round=number,
            verdict=done.verdict,
            val_bpb=None if said is None else said.val_bpb,
            incumbent_bpb=_number(summary.get("incumbent_bpb")),
            tokens=self._tokens.get(number),
            seconds=_seconds(work) | trained_s,
            synthetic_share=_synthetic_share(work),
            generator=_writers(work, writer),
            candidate=done.final_checkpoint,
        )


def _gate_summary(done: RoundCommitted, work: Iterable[WorkCompleted]) -> Mapping[str, Scalar]:
    """Return the results of the gate's work on the round's candidate."""
    facts = {fact.item: fact for fact in work}
    found = facts.get(verdict_item(done.round, done.final_checkpoint, facts))
    return {} if found is None else found.summary


def _seconds(work: Iterable[WorkCompleted]) -> dict[str, float]:
    """Return how long each phase took: its items run side by side, so as long as the longest."""
    found: dict[str, float] = {}
    for fact in work:
        found[fact.phase] = max(found.get(fact.phase, 0.0), fact.elapsed_s)
    return found


def _trained_tokens(cycle: CycleState) -> dict[int, int]:
    """Return round -> tokens trained on in it, its branch among them, on the line that counts.

    A round begins with what its first gang had loaded, which is the end of an earlier round's
    trunk, or with the last candidate.
    """
    found: dict[int, int] = {}
    known: dict[str, int] = {"": 0}
    last, begun = "", 0
    for fact in cycle.canonical_branch():
        if isinstance(fact, CheckpointCommitted):
            if fact.round not in found:
                opened = cycle.attempts_opened.get(fact.attempt)
                loaded = last if opened is None else opened.from_checkpoint
                begun = known.get(loaded, known[last])
            found[fact.round] = fact.tokens - begun
            known[fact.artifact], last = fact.tokens, fact.artifact
    return found


def _training_seconds(cycle: CycleState, islands: Islands) -> dict[int, float]:
    """Return round -> how long it was trained; of islands, which train together, the longest."""
    found: dict[int, float] = defaultdict(float)
    for number, opened in cycle.attempts_opened.items():
        if (closed := cycle.attempts_closed.get(number)) is not None:
            found[opened.round] += closed.elapsed_s
    for state, started in islands:
        own_s = sum(closed.elapsed_s for closed in state.attempts_closed.values())
        found[started.parent_round] = max(found[started.parent_round], own_s)
    return dict(found)


def _writers(work: Iterable[WorkCompleted], in_force: str) -> str:
    """Return who has written in a round, the one with most samples first; empty for nobody.

    Earlier versions didn't record it: then it was the generator in force.
    """
    samples: Counter[str] = Counter()
    for fact in work:
        if fact.phase == Phase.GENERATE:
            name = str(fact.summary.get("generator") or in_force)
            samples[name] += whole_count(fact.counts, "samples")
    return ",".join(sorted(samples, key=lambda name: (-samples[name], name)))


def _synthetic_share(work: Iterable[WorkCompleted]) -> float | None:
    """Return the share of the packed bytes; None where an older version didn't count them."""
    packed: Mapping[str, float] = next((f.counts for f in work if f.phase == Phase.PACK), {})
    if "synthetic_bytes" not in packed or not packed.get("bytes"):
        return None
    return packed["synthetic_bytes"] / packed["bytes"]


def _number(value: Scalar | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _id(cycle: CycleState) -> CycleId:
    return CycleId("") if cycle.begun is None else cycle.begun.cycle
