"""What must hold of a cycle at its end, whatever was killed on the way.

Owns these checks: no sample lost, none doubled, no process left. Reads what the ledger on a
daemon's disk says, and the artifacts in its store.
"""

from collections.abc import Mapping
from pathlib import Path

import psutil

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.trunk import start_of
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.ids import ArtifactId
from jupiterd.workers.evaluate.documents import ScoringLimits, choose_documents
from jupiterd.workers.evaluate.score_file import read_folders
from jupiterd.workers.samples.sample_file import read_samples
from tests.support.daemons.cluster import Cluster, Daemon
from tests.support.strikes.undisturbed import data_of_round_one


async def assert_whole(cluster: Cluster, cycle: CycleState, steps: int, folder: Path) -> None:
    """Check all of it."""
    await assert_data_is_that_of_an_undisturbed_run(cycle, folder)
    for number in range(1, cycle.rounds_committed + 1):
        assert_trained_on_every_sequence_once(cycle, number, steps)
        assert_scored_every_document_once(cluster, cycle, number)
    assert_samples_are_all_there_once(cluster, cycle)


async def assert_data_is_that_of_an_undisturbed_run(cycle: CycleState, folder: Path) -> None:
    """Round 1 collects, filters and packs the very same bytes as one machine does in one go."""
    assert cycle.started is not None
    expected = await data_of_round_one(cycle.started, folder)
    made = {fact.item: fact.outputs for fact in cycle.completed.values()}
    differing = [item for item in expected if made.get(item) != expected[item]]
    assert not differing, f"not what one machine makes: {differing}"


def assert_trained_on_every_sequence_once(cycle: CycleState, number: int, steps: int) -> None:
    """On the line that counts, steps rise to the last, and each took as much data as any other."""
    line = [
        f
        for f in cycle.canonical_branch()
        if isinstance(f, CheckpointCommitted) and f.round == number
    ]
    reached = [fact.step for fact in line]
    assert reached == sorted(set(reached)), f"round {number}: {reached}"
    assert (line[-1].step, line[-1].is_final) == (steps, True)
    before = cycle.checkpoint(start_of(cycle, number))
    tokens_before = before.tokens if before else 0
    per_step = {(f.cursor / f.step, (f.tokens - tokens_before) / f.step) for f in line}
    assert len(per_step) == 1, f"round {number}: a step took more or less than the others: {line}"


def assert_scored_every_document_once(cluster: Cluster, cycle: CycleState, number: int) -> None:
    """Both pieces together hold each document that is to be scored once."""
    facts = [
        fact
        for fact in _made(cycle, number, Phase.EVALUATE).values()
        if fact.item.endswith(cycle.verdicts[number].candidate[:8])
    ]
    assert len(facts) == 2
    scored = read_folders(_folder(cluster, fact.outputs["scores"]) for fact in facts).scores
    assert sorted(score.id for score in scored) == _to_be_scored(cluster, cycle)
    assert cycle.verdicts[number].verdict != "ABSTAIN", cycle.verdicts[number].reason


def _to_be_scored(cluster: Cluster, cycle: CycleState) -> list[str]:
    assert cycle.started is not None
    parts = parse_domain(cycle.started.domain_yaml, "domain.yaml").evaluation
    limits = ScoringLimits(
        parts.min_document_bytes, parts.max_document_bytes, parts.max_cluster_documents
    )
    samples = [
        sample
        for fact in _made(cycle, 1, Phase.COLLECT).values()
        if "holdout" in fact.outputs
        for sample in read_samples(_folder(cluster, fact.outputs["holdout"]))
    ]
    return sorted(document.id for document in choose_documents(samples, limits, 0, 1))


def assert_samples_are_all_there_once(cluster: Cluster, cycle: CycleState) -> None:
    """No batch holds a sample twice."""
    for fact in cycle.completed.values():
        for name in ("documents", "train", "holdout", "samples", "kept"):
            if name in fact.outputs:
                ids = [sample.id for sample in read_samples(_folder(cluster, fact.outputs[name]))]
                assert len(ids) == len(set(ids)), f"{fact.item} holds a sample twice"


def left_over(folder: Path, daemons: list[Daemon]) -> list[str]:
    """Return the command lines of processes that began in `folder` and aren't its daemons'.

    A daemon works in its state folder, and its workers inherit that, so none of them can hide.
    """
    ours = {daemon.pid for daemon in daemons}
    return [
        f"{process.pid}: {' '.join(process.cmdline())}"
        for process in psutil.process_iter()
        if process.pid not in ours and _works_in(process, folder)
    ]


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()).is_relative_to(
            folder.resolve()
        )
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _made(cycle: CycleState, number: int, phase: Phase) -> Mapping[str, object]:
    return {
        fact.item: fact
        for fact in cycle.completed.values()
        if (fact.round, fact.phase) == (number, phase)
    }


def _folder(cluster: Cluster, artifact: str) -> Path:
    """Return an artifact's files in the first store that has them."""
    holder = next(daemon for daemon in cluster.daemons if daemon.holds(artifact))
    return holder.state_dir / "store" / artifact[:2] / ArtifactId(artifact) / "files"
