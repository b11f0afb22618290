"""What must hold of a cycle at its end, whatever was killed on the way.

Owns these checks: no sample lost, none doubled, no process left. Reads what the ledger on a
daemon's disk says, and the artifacts in its store.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import psutil

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.facts import CheckpointCommitted
from jupiterd.cycle.work import Phase
from jupiterd.ids import ArtifactId
from jupiterd.workers.data.sample_file import read_samples
from jupiterd.workers.evaluate.score_file import read_scores
from tests.e2e.cluster import Cluster, Daemon
from tests.e2e.undisturbed import data_of_round_one


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
    assert {item: made[item] for item in expected} == expected


def assert_trained_on_every_sequence_once(cycle: CycleState, number: int, steps: int) -> None:
    """On the line that counts, steps rise to the last, and each took as much data as any other."""
    line = [f for f in cycle.line() if isinstance(f, CheckpointCommitted) and f.round == number]
    reached = [fact.step for fact in line]
    assert reached == sorted(set(reached)), f"round {number}: {reached}"
    assert (line[-1].step, line[-1].is_final) == (steps, True)
    before = cycle.last_checkpoint(number - 1)
    tokens_before = before.tokens if before else 0
    per_step = {(f.cursor / f.step, (f.tokens - tokens_before) / f.step) for f in line}
    assert len(per_step) == 1, f"round {number}: a step took more or less than the others: {line}"


def assert_scored_every_document_once(cluster: Cluster, cycle: CycleState, number: int) -> None:
    """Both pieces together hold each document once; `read_scores` sees to that."""
    pieces = [
        _folder(cluster, fact.outputs["scores"])
        for fact in _made(cycle, number, Phase.EVALUATE).values()
        if fact.item.endswith(cycle.verdicts[number].candidate[:8])
    ]
    assert len(pieces) == 2
    scored = {score.id for score in read_scores(pieces)}
    first = _made(cycle, 1, Phase.COLLECT)
    held_out = {
        sample.id
        for fact in first.values()
        for sample in read_samples(_folder(cluster, fact.outputs["holdout"]))
    }
    assert scored, "nothing was scored"
    assert scored <= held_out
    assert cycle.verdicts[number].verdict != "ABSTAIN", cycle.verdicts[number].reason


def assert_samples_are_all_there_once(cluster: Cluster, cycle: CycleState) -> None:
    """No batch holds a sample twice, and every item was completed once."""
    facts = list(cycle.completed.values())
    assert max(Counter(fact.item for fact in facts).values()) == 1
    for fact in facts:
        for name in ("train", "holdout", "samples", "kept"):
            if name in fact.outputs:
                ids = [sample.id for sample in read_samples(_folder(cluster, fact.outputs[name]))]
                assert len(ids) == len(set(ids)), f"{fact.item} holds a sample twice"


def left_over(folder: Path, daemons: list[Daemon]) -> list[str]:
    """Return the command lines of processes that began in `folder` and aren't its daemons'.

    Workers inherit their daemon's working folder, so none of them can hide.
    """
    ours = {daemon.pid for daemon in daemons}
    return [
        f"{process.pid}: {' '.join(process.cmdline())}"
        for process in psutil.process_iter()
        if process.pid not in ours and _works_in(process, folder)
    ]


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return (
            process.status() != psutil.STATUS_ZOMBIE
            and Path(process.cwd()).resolve() == folder.resolve()
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
