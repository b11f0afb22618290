"""Where samples lie: every batch and every shard that the ledger knows, the newest first.

Owns deriving the artifacts of samples from recorded work. Doesn't know what is in a sample, or what
of it is here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from jupiterd.cluster.artifacts.old_rounds import Passing
from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.run_names import Named, meant
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.catalog.effective_work import work_that_counts
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId, CycleId, NodeId

SHARDS = "shards"

_KEPT_FIRST = {"kept": 0, "dropped": 1}
"""What the filters let through carries their scores; what came before them doesn't."""


@dataclass(frozen=True)
class Output:
    """One output of a finished piece of work."""

    run: CycleId
    kind: str
    label: str
    round: int
    phase: str
    item: str
    name: str
    artifact: ArtifactId
    node: NodeId
    node_name: str
    is_passing: bool
    """Nodes may have let it go: what counts of it lies in other outputs."""

    def to_plain(self) -> dict[str, Any]:
        """Return its row for people and scripts."""
        return {
            "run": self.run,
            "kind": self.kind,
            "name": self.label,
            "round": self.round,
            "phase": self.phase,
            "output": self.name,
            "artifact": self.artifact,
            "node": {"id": self.node, "name": self.node_name},
        }


def outputs_of(state: State) -> list[Output]:
    """Return what all recorded work has made, that of the newest round of the newest run first."""
    names = {node: member.name for node, member in state.members.items()}
    runs = sorted(state.cycles.values(), key=attrgetter("start_order"), reverse=True)
    return [output for run in runs for output in _of_run(run, names)]


def _of_run(run: CycleState, names: Mapping[NodeId, str]) -> Iterator[Output]:
    if run.begun is None:
        return
    of_text = (fact for fact in run.completed.values() if fact.phase != Phase.TRAIN)
    done = sorted(work_that_counts(of_text), key=_newest_first)
    passing = Passing(run)
    for fact in done:
        going = passing.names(fact)
        for name, artifact in sorted(fact.outputs.items()):
            node_name = names.get(fact.node, fact.node[:8])
            yield Output(
                fact.cycle, run.kind, run.label, fact.round, fact.phase, fact.item, name, artifact,
                fact.node, node_name, name in going,
            )  # fmt: skip


def _newest_first(fact: WorkCompleted) -> tuple[int, str]:
    return -fact.round, fact.item


def shards_meant(outputs: list[Output], wanted: str) -> Output:
    """Return the shards whose id begins so, or the newest of the run that is called so.

    `RUN/ROUND` means those of a certain round.

    Raises:
        NotFoundError: there are none.
        UsageError: several ids begin so.
    """
    name, _, round_text = wanted.partition("/")
    known = [
        Named(each, each.label, [each.artifact, each.run])
        for each in outputs
        if each.name == SHARDS and round_text in ("", str(each.round))
    ]
    found = meant(known, name)
    if not found:
        raise NotFoundError(
            f"no shards are called {wanted}",
            "name a run, RUN/ROUND or the beginning of the shards' id: jupiterctl data list",
        )
    return found[0]


def by_artifact(outputs: Iterable[Output]) -> dict[ArtifactId, list[Output]]:
    """Return the outputs that each artifact is; what the filters kept comes first."""
    found: dict[ArtifactId, list[Output]] = {}
    for output in sorted(outputs, key=lambda each: _KEPT_FIRST.get(each.name, 2)):
        found.setdefault(output.artifact, []).append(output)
    return found
