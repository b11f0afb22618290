"""The document of `data samples --dropped`: where what a round left out lies on this machine.

Owns its keys. What isn't here is fetched from whoever has it. Reads no sample: jupiterctl does, on
the same machine, as the same user.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.data.heavy_drops import judged_phases
from jupiterd.cycle.data.phase_flow import flow_of
from jupiterd.cycle.rounds.phase_summary import total_counts
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.cycle_lookup import meant_cycle
from jupiterd.daemon.catalog.effective_work import work_that_counts
from jupiterd.daemon.catalog.phase_summary import own_work
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import JupiterError, NotFoundError, UsageError
from jupiterd.ids import short

OUTPUTS: Final = ("dropped", "refused", "skipped")
"""Names of outputs that hold what was left out: by filters, of answers, by readers."""

UNITED: Final = "kept"
"""An output of the filter's last piece, whose `dropped` has what those before it dropped."""


async def drops_document(
    state: State, artifact_cache: ArtifactCache, wanted: str
) -> dict[str, Any]:
    """Return what CYCLE/ROUND left out, by phase; either may be left out: the newest is meant.

    Raises:
        NotFoundError: there is no such cycle, or nothing of that round is done yet.
        UsageError: several ids begin so, or that is no round.
    """
    named, _, number = wanted.partition("/")
    cycle, begun = meant_cycle(state, named)
    done = _round(cycle, number)
    return {
        "schema": SCHEMA,
        "drops": {
            "cycle": begun.cycle,
            "domain": begun.domain,
            "round": done,
            "phases": [
                await _phase(state, artifact_cache, phase, _work(cycle, done, phase))
                for phase in judged_phases()
            ],
        },
    }


def _round(cycle: CycleState, wanted: str) -> int:
    if wanted and not wanted.isdecimal():
        raise UsageError(f"{wanted} is no round", "jupiterctl data samples --help")
    phases = set(judged_phases())
    known = {fact.round for fact in cycle.completed.values() if fact.phase in phases}
    if not known or (wanted and int(wanted) not in known):
        what = f"round {wanted}" if wanted else "the cycle"
        raise NotFoundError(f"no phase of {what} has ended yet", "jupiterctl cycle status")
    return int(wanted) if wanted else max(known)


def _work(cycle: CycleState, number: int, phase: Phase) -> list[WorkCompleted]:
    return own_work(phase, work_that_counts(cycle.completed_in(number, phase).values()))


async def _phase(
    state: State, artifact_cache: ArtifactCache, phase: Phase, facts: Sequence[WorkCompleted]
) -> dict[str, Any]:
    found: list[dict[str, str]] = []
    missing: list[str] = []
    for name, fact in _outputs(facts):
        try:
            found.append(
                {"name": name, "path": str(await artifact_cache.ensure(fact.outputs[name]))}
            )
        except JupiterError:
            member = state.members.get(fact.node)
            missing.append(short(fact.node) if member is None else member.name)
    flow = flow_of(phase, total_counts([fact.counts for fact in facts])).to_plain()
    return {"phase": str(phase), **flow, "folders": found, "missing": sorted(set(missing))}


def _outputs(facts: Sequence[WorkCompleted]) -> Iterator[tuple[str, WorkCompleted]]:
    """Yield the outputs that hold what was left out, each with the work that made it."""
    united = [fact for fact in facts if UNITED in fact.outputs]
    for fact in united or facts:
        for name in OUTPUTS:
            if name in fact.outputs:
                yield name, fact
