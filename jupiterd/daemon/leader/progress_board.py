"""How far the running phase is: telemetry that the leader gathers and shares.

Owns the latest readings of each item and their sum. Nothing here is a fact: it goes with the
leader.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from jupiterd.cluster.planning.predicted_throughput import PREDICTED
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.leader.island_progress import united
from jupiterd.ids import CycleId, NodeId
from jupiterd.protocol.frames import Preparing, Progressed

MAX_DETAIL_CHARACTERS = 300

SUMMED = frozenset({"tokens_per_s", "accepted_per_min"})
"""Readings of which a phase's is the sum of its items'."""

RANKS_PROGRESS = frozenset({"step", "step_lag", "tokens_per_s"})
"""What is told of each rank that trains."""

MAX_NODES = 16
"""Told of one phase: it travels with every heartbeat."""

FLOPS_PER_TOKEN, PEAK = "flops_per_token", "peak_flops_per_s"
OF_THE_GANG = (PREDICTED, FLOPS_PER_TOKEN, PEAK)
"""Told among the readings of training, where the leader knows them of its gang."""

TRAINED_BY = "trained_by"
"""What is noted of who trains a round, and why: it stays beside whatever else is special."""

LET_GO = "let_go"
"""What is noted of machines that a gang goes on without, and why."""

RATE_BASIS_S = 3.0
RATE_BASIS_UNITS = 3
"""A rate is told once so much has been done in so long; on less, time left would be a guess."""


STALLED_S = 20.0
STALLED_GAPS = 3.0
"""Nothing moves, where nothing more was told for so long and for so many times the longest silence
so far: what scores held-out text, or trains large steps, isn't stalled between them."""
FIRST_GAP_S = 60.0
"""Taken for the longest silence until a second reading tells one: a step may take a minute."""


@dataclass(frozen=True)
class Basis:
    """What a rate is counted from: the first reading, so that starting up has no part in it."""

    at_s: float
    done: int

    def rate(self, now_s: float, done: int) -> float | None:
        """Return units per second; None where too little is known."""
        elapsed_s, gained = now_s - self.at_s, done - self.done
        is_enough = elapsed_s >= RATE_BASIS_S and gained >= RATE_BASIS_UNITS
        return gained / elapsed_s if is_enough else None


@dataclass
class PhaseProgress:
    """One phase of one cycle while it runs."""

    cycle: CycleId
    round: int
    phase: Phase
    started_s: float
    items: dict[str, Progressed] = field(default_factory=dict[str, Progressed])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    basis: Basis | None = None
    moved_s: float = 0.0
    """When it was last told that more is done."""
    longest_gap_s: float = 0.0
    """Between two such readings, since the rate is counted."""
    nodes: dict[str, NodeId] = field(default_factory=dict[str, NodeId])
    """Item -> who does it, as far as that is told."""
    preparing: tuple[Preparing, float] | None = None
    """What is done before the first step, and when that began; None once there is one."""
    part_of: str = ""
    """The run of which an island is trained; empty where it is a run of its own."""

    def advance(self, item: str, event: Progressed, now_s: float) -> None:
        """Keep an item's latest reading; one that began anew makes the rate begin anew."""
        before = self._done()
        self.items[item] = event
        self.preparing = None
        done = self._done()
        if done != before:
            if self.basis is not None:
                self.longest_gap_s = max(self.longest_gap_s, now_s - self.moved_s)
            self.moved_s = now_s
        if event.done > 0 and (self.basis is None or done < self.basis.done):
            self.basis, self.longest_gap_s = Basis(now_s, done), 0.0

    def complete(self, item: str) -> None:
        """Take an item as done: one that never knew how much there is knows it now."""
        if (last := self.items.get(item)) is not None:
            most = max(last.done, last.total)
            self.items[item] = replace(last, done=most, total=most)

    def to_plain(self, now_s: float) -> dict[str, Any]:
        """Return the sums over the items; rate (per second) and ETA (seconds) may be None."""
        done = self._done()
        total = self._total()
        rate = None if self.basis is None else self.basis.rate(now_s, done)
        return {
            "cycle": self.cycle,
            "round": self.round,
            "phase": str(self.phase),
            "done": done,
            "total": total,
            "unit": self._unit(),
            "rate": rate,
            "eta_s": self._left_s(now_s),
            "elapsed_s": now_s - self.started_s,
            "values": self._values(),
            "gang": self.extra.get("gang") or self._by_node(),
            "epoch": self.extra.get("attempt"),  # as programs knew it before
            "attempt": self.extra.get("attempt"),
            "resumed_from_step": self.extra.get("resumed_from_step"),
            "preparing": self._prepares(now_s),
            "detail": "; ".join(filter(None, map(self.extra.get, (TRAINED_BY, LET_GO, "detail")))),
            **{name: self.extra[name] for name in ("outer", "ahead") if name in self.extra},
            **self._stalled(now_s),
        }

    def _stalled(self, now_s: float) -> dict[str, float]:
        """Return for how long nothing has moved; nothing where that is nothing odd."""
        silent_s = now_s - self.moved_s
        is_over = self._total() and self._done() >= self._total()
        if self.basis is None or self.preparing is not None or is_over:
            return {}
        patience_s = max(STALLED_S, STALLED_GAPS * (self.longest_gap_s or FIRST_GAP_S))
        return {"stalled_s": silent_s} if silent_s > patience_s else {}

    def _prepares(self, now_s: float) -> dict[str, Any] | None:
        if self.preparing is None:
            return None
        stage, began_s = self.preparing
        expected_s = stage.expected_s or None
        told = {"stage": stage.stage, "elapsed_s": now_s - began_s, "expected_s": expected_s}
        return told | ({"detail": stage.detail} if stage.detail else {})

    def _left_s(self, now_s: float) -> float | None:
        """Return how long it takes yet: told at each reading, and counted down until the next.

        None where too little is known, nothing moves, or the time is over: what is under way takes
        longer than what came before, and nobody knows how long.
        """
        total, done = self._total(), self._done()
        rate = None if self.basis is None else self.basis.rate(self.moved_s, done)
        if not rate or not total or self._stalled(now_s):
            return None
        left_s = (total - done) / rate - (now_s - self.moved_s)
        return max(0.0, left_s) if left_s > 0 or done == total else None

    def _unit(self) -> str:
        """Return what is counted just now: once all files are read, the samples of what follows."""
        units = list(dict.fromkeys(item.unit for item in self.items.values()))
        still = (unit for unit in units if any(map(_is_open, self._counted_in(unit))))
        return next(still, units[-1] if units else "items")

    def _counted_in(self, unit: str) -> list[Progressed]:
        return [item for item in self.items.values() if item.unit == unit]

    def _done(self) -> int:
        return sum(item.done for item in self._counted_in(self._unit()))

    def _total(self) -> int:
        """Return how much there is to do; 0 where nobody knows of one of the items."""
        found = self._counted_in(self._unit())
        is_known = all(item.total for item in found)
        return sum(max(item.total, item.done) for item in found) if is_known else 0

    def _by_node(self) -> list[dict[str, Any]]:
        """Return how fast each node generates just now."""
        rows: dict[NodeId, dict[str, Any]] = {}
        for item, node in self.nodes.items():
            readings = self.items[item].values
            if self.phase is not Phase.GENERATE or SUMMED - readings.keys():
                continue
            row = rows.setdefault(node, {"node": node, **dict.fromkeys(SUMMED, 0.0)})
            row |= {name: round(row[name] + readings[name], 1) for name in SUMMED}
        return [rows[node] for node in sorted(rows)][:MAX_NODES]

    def _values(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for item in self.items.values():
            for name, value in item.values.items():
                values[name] = values.get(name, 0.0) + value if name in SUMMED else value
        return values | {name: self.extra[name] for name in OF_THE_GANG if self.extra.get(name)}


def _is_open(item: Progressed) -> bool:
    return not item.total or item.done < item.total


PhaseKey: TypeAlias = "tuple[CycleId, int, Phase]"
"""A phase of a round of a cycle."""

_NONE: Mapping[PhaseKey, float] = {}


class ProgressBoard:
    """The running phases of this leader's cycles."""

    def __init__(self, begun_before: Mapping[PhaseKey, float] = _NONE) -> None:
        """Take when phases began that another leader told of last: they go on under this one."""
        self._begun_before = begun_before
        self._running: dict[CycleId, PhaseProgress] = {}

    def begin(
        self, cycle: CycleId, round_number: int, phase: Phase, now_s: float, *, part_of: str = ""
    ) -> None:
        """Start a phase, unless it is the one that runs already.

        part_of: the run of which this one trains an island, where it does
        """
        running = self._running.get(cycle)
        if running is None or (running.round, running.phase) != (round_number, phase):
            began_s = self._begun_before.get((cycle, round_number, phase), now_s)
            self._running[cycle] = PhaseProgress(
                cycle, round_number, phase, min(began_s, now_s), part_of=part_of
            )

    def advance(
        self, cycle: CycleId, item: str, event: Progressed, now_s: float, node: NodeId | None = None
    ) -> None:
        """Keep an item's latest reading, and who does it where that is said."""
        if (running := self._running.get(cycle)) is not None:
            running.advance(item, event, now_s)
            if node is not None:
                running.nodes[item] = node

    def complete(self, cycle: CycleId, item: str) -> None:
        """Take an item of the running phase as done."""
        if (running := self._running.get(cycle)) is not None:
            running.complete(item)

    def reading(self, cycle: CycleId, item: str, name: str) -> float | None:
        """Return the latest reading of that name, of an item of a running phase; None: none yet."""
        running = self._running.get(cycle)
        latest = None if running is None else running.items.get(item)
        return None if latest is None else latest.values.get(name)

    def prepare(self, cycle: CycleId, stage: Preparing | None, began_s: float = 0.0) -> None:
        """Show what is done before the first step, since when; None: nothing any more."""
        if (running := self._running.get(cycle)) is not None:
            running.preparing = None if stage is None else (stage, began_s)

    def prepare_item(self, cycle: CycleId, stage: Preparing, began_s: float) -> None:
        """Show the same of an item, as long as nothing is known of how far any of them is."""
        running = self._running.get(cycle)
        if running is not None and not running.items:
            running.preparing = (stage, began_s)

    def restart_rate(self, cycle: CycleId) -> None:
        """Count the rate anew from the next reading: a gang starts, and may resume elsewhere."""
        if (running := self._running.get(cycle)) is not None:
            running.basis = None

    def note(self, cycle: CycleId, extra: Mapping[str, Any]) -> None:
        """Keep something else that people see, such as the gang."""
        if (running := self._running.get(cycle)) is not None:
            running.extra.update(extra)

    def explain(self, cycle: CycleId, detail: str) -> None:
        """Keep what is special just now, in one line; empty takes it back.

        It travels with every heartbeat, so it is short.
        """
        lines = detail.strip().splitlines()
        self.note(cycle, {"detail": lines[0][:MAX_DETAIL_CHARACTERS] if lines else ""})

    def show_gang(
        self,
        cycle: CycleId,
        gang: list[dict[str, Any]],
        workers: Mapping[int, Mapping[str, object]],
    ) -> None:
        """Keep who trains: a new gang, or with `workers` what is new of ranks of this one."""
        running = self._running.get(cycle)
        if running is None:
            return
        if not workers:
            running.extra["gang"] = gang
        for seat in running.extra.get("gang", []):
            if seat["rank"] in workers:
                seat.update(workers[seat["rank"]])

    def stepped(self, cycle: CycleId, rank: int, step: int, tokens_per_s: float | None) -> None:
        """Show how far a rank is, how far behind the gang's foremost one, and how fast.

        All are as far when it tells: what another one does until this one tells again is no lag.
        """
        running = self._running.get(cycle)
        seats = [] if running is None else running.extra.get("gang", [])
        foremost = max([step, *(seat.get("step") or 0 for seat in seats)])
        speed = None if tokens_per_s is None else round(tokens_per_s, 1)
        for seat in (seat for seat in seats if seat["rank"] == rank):
            seat.update(step=step, step_lag=foremost - step, tokens_per_s=speed)

    def elapsed_s(self, cycle: CycleId, now_s: float) -> float:
        """Return how long the cycle's running phase has been going on."""
        running = self._running.get(cycle)
        return 0.0 if running is None else now_s - running.started_s

    def end(self, cycle: CycleId) -> None:
        """Forget a cycle that no longer runs here."""
        self._running.pop(cycle, None)

    def to_plain(self, now_s: float) -> list[dict[str, Any]]:
        """Return every running phase; islands are parts of their run's."""
        found = [(running.part_of, running.to_plain(now_s)) for running in self._running.values()]
        parts = [(whole, plain) for whole, plain in found if whole]
        return [
            united(plain, [part for whole, part in parts if whole == plain["cycle"]])
            for whole, plain in found
            if not whole
        ]
