"""What this node's metrics are read from, taken all at once when somebody asks.

Owns the reading and its making. Doesn't know how a metric is called
(`metrics_table`), or what Prometheus is. Nothing is counted anywhere for its sake but lines of the
log (`logged_events`); what only rises is counted from the daemon's start, as counters are.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.island_runs import counting_islands, is_whole
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.catalog.phase_rows import phase_rows
from jupiterd.daemon.queries.cluster.status_document import status_document
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.daemon.runtime.logged_events import LoggedEvents
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId

Document = Mapping[str, Any]

COUNT_S: Final = 5.0


@dataclass(frozen=True)
class MetricsReading:
    """One look at a node."""

    status: Document
    """As `status` shows it."""
    loop_lag_s: float
    """The worst of late: by how much the daemon's loop came too late."""
    tokens: int
    """Trained on since this daemon was started, as far as it knows."""
    round_s: Sequence[float] = ()
    """How long each committed round of each cycle took."""
    checkpoint_bytes: int | None = None
    """Of the newest checkpoint, where a copy lies here."""
    sent_bytes: Mapping[str, int] | None = None
    """Kind -> bytes sent to others since this daemon was started."""
    errors: Mapping[str, int] | None = None
    """Event -> warnings and errors in the log since then."""
    answers: Mapping[str, int] | None = None
    """How they ended -> requests for text that engines of this node had since then."""
    answer_tokens: int | None = None
    """That they wrote since then."""

    @property
    def own(self) -> Document:
        """What the status says of this node."""
        own = self.status["node"]["id"]
        return next((row for row in self.status["nodes"] if row["id"] == own), {})

    @property
    def running(self) -> Document:
        """The cycle, else the training run, that runs just now; empty where none does."""
        shown = (self.status["cycle"], self.status["train"])
        return next((each for each in shown if each and each["state"] == "running"), {})


class TrainedTokens:
    """Counts the tokens trained since this daemon began to look; the total never falls.

    A run counts from where its leader was first heard to train it: what the ledger brings on
    catching up was trained before, or while this daemon wasn't there.
    """

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._grown: dict[str, int] = {}

    @property
    def total(self) -> int:
        """Tokens of all runs together."""
        return sum(self._grown.values())

    def note(self, live: Mapping[str, int], recorded: Mapping[str, int]) -> None:
        """Count each run's tokens, from the leaders' live progress and from the ledger."""
        for run, tokens in live.items():
            self._first.setdefault(run, tokens)
        for run, first in self._first.items():
            newest = max(live.get(run, 0), recorded.get(run, 0))
            self._grown[run] = max(self._grown.get(run, 0), newest - first)


class MetricsReader:
    """Reads one node; remembers only what keeps counters from falling."""

    def __init__(self, sources: DocumentSources, events: LoggedEvents) -> None:
        self._sources = sources
        self._events = events
        self._tokens = TrainedTokens()

    async def run(self) -> None:
        """Count for ever: what happens between two scrapes, or before the first, counts as well."""
        while True:
            self._count()
            await asyncio.sleep(COUNT_S)

    async def read(self) -> MetricsReading:
        """Return a reading; it takes milliseconds of the daemon's loop."""
        sources = self._sources
        status = status_document(sources)
        self._count()
        newest = sources.replica.derived(_newest_checkpoint)
        answers = sources.serving.totals
        return MetricsReading(
            status=status,
            loop_lag_s=sources.view.loop_lag_s,
            tokens=self._tokens.total,
            round_s=sources.replica.derived(_round_durations),
            checkpoint_bytes=await asyncio.to_thread(self._size, newest),
            sent_bytes={"artifact": sources.artifact_cache.sent_bytes},
            errors=dict(self._events.counts),
            answers=answers.by_outcome(),
            answer_tokens=answers.tokens,
        )

    def _count(self) -> None:
        live = {
            str(row["cycle"]): int(row["values"]["tokens"])
            for row in self._sources.view.running()
            if row["phase"] == Phase.TRAIN and math.isfinite(row["values"].get("tokens", math.nan))
        }
        self._tokens.note(live, self._sources.replica.derived(_recorded_tokens))

    def _size(self, artifact: str) -> int | None:
        """Return what an artifact takes; its manifest is read from the disk once."""
        try:
            return self._sources.artifact_cache.store.manifest(ArtifactId(artifact)).size_bytes
        except (JupiterError, OSError):
            return None


def _recorded_tokens(state: State) -> dict[str, int]:
    """Return what each cycle and run has trained on, as its line of checkpoints says."""
    return {
        str(cycle.begun.cycle): max(
            (checkpoint.tokens for checkpoint in _checkpoints(cycle.canonical_branch())), default=0
        )
        for cycle in state.cycles.values()
        if cycle.begun is not None and is_whole(cycle)
    }


def _checkpoints(line: Sequence[object]) -> list[CheckpointCommitted]:
    return [fact for fact in line if isinstance(fact, CheckpointCommitted)]


def _newest_checkpoint(state: State) -> str:
    """Return the artifact of the newest checkpoint of what was begun last; empty: there is none."""
    begun = sorted(state.cycles.values(), key=lambda cycle: cycle.start_order, reverse=True)
    newest_of_runs = (
        checkpoints[-1]
        for cycle in begun
        if (checkpoints := _checkpoints(cycle.canonical_branch()))
    )
    newest = next(newest_of_runs, None)
    return "" if newest is None else newest.artifact


def _round_durations(state: State) -> tuple[float, ...]:
    """Return how long the phases of each committed round took, added up."""
    return tuple(
        sum(row["elapsed_s"] or 0.0 for row in rows if row["round"] == number)
        for cycle in state.cycles.values()
        if cycle.started is not None and cycle.begun is not None
        for rows in [phase_rows(cycle, None, counting_islands(state.cycles, cycle.begun.cycle))]
        for number in range(1, cycle.rounds_committed + 1)
    )
