"""What must be the same of two cycles of one seed, however often one of them was struck.

Owns these checks. Text and shards agree to the last bit, and with those of one machine that makes
them in one go; what a gang has trained is as good, for its sums are rounded otherwise; a verdict
follows from its artifacts. Doesn't know what was struck.
"""

import json
from collections import defaultdict
from pathlib import Path

from jupiterd.cluster.facts.facts import CheckpointCommitted, WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.entry import parse
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.phases.proxies import PROXIES
from jupiterd.cycle.phases.view import item_id
from jupiterd.store.ledger_file import LedgerFile
from jupiterd.workers.samples.sample_file import read_samples
from tests.support.daemons.cluster import Cluster, Daemon
from tests.support.strikes.wholeness import assert_whole

SAME_BPB = 0.02
"""How far apart the models of two seeds are at most."""

SAME_STUDENT_BPB = 1e-4
"""A small student learns on one machine, from the same tokens."""

OF_DATA = (Phase.COLLECT, Phase.GENERATE, Phase.FILTER, Phase.PACK)


async def assert_is_whole(cluster: Cluster, cycle: CycleState, steps: int, folder: Path) -> None:
    """Check a cycle by itself: its data, its training, its scores, its verdict."""
    await assert_whole(cluster, cycle, steps, folder)
    assert_each_item_counts_once(cluster, cycle)
    assert_generated_once(cluster, cycle)
    for daemon in cluster.daemons:
        assert_trained_once(cluster, daemon, cycle)
        assert_judges_alike(cluster, daemon, cycle)


def assert_each_item_counts_once(cluster: Cluster, cycle: CycleState) -> None:
    """Whatever was done twice came to the same, and one of the two is in force."""
    assert cycle.started is not None
    for daemon in cluster.daemons:
        found: dict[str, set[tuple[tuple[str, str], ...]]] = defaultdict(set)
        for fact in _recorded(daemon):
            if fact.cycle == cycle.started.cycle and fact.phase in OF_DATA:
                found[fact.item].add(tuple(sorted(fact.outputs.items())))
        assert {item: len(made) for item, made in found.items() if len(made) > 1} == {}
    for number, manifest in cycle.manifests.items():
        packed = cycle.completed[number, item_id(number, Phase.PACK, 0)]
        assert manifest.shards == (packed.outputs["shards"],)


def assert_generated_once(cluster: Cluster, cycle: CycleState) -> None:
    """No two items of a round wrote the same, or from the same document; nothing is missing."""
    for number in range(1, cycle.rounds_committed + 1):
        made = [fact for fact in cycle.completed.values() if _is_written(fact, number)]
        assert made
        found = [_written(cluster, fact) for fact in made]
        asked = [fact.counts["prompts"] for fact in made]
        assert [len(samples) for samples in found] == asked
        ids = [sample.id for samples in found for sample in samples]
        assert len(ids) == len(set(ids)), "two items wrote the same"
        parents = [{each for sample in samples for each in sample.parents} for samples in found]
        total = sum(map(len, parents))
        assert total == len(set[str]().union(*parents)), "two items wrote of one document"


def _is_written(fact: WorkCompleted, number: int) -> bool:
    """Say whether it is text of a round by the server, which never fails."""
    is_generated = (fact.round, fact.phase) == (number, Phase.GENERATE)
    return is_generated and str(fact.summary["generator"]).startswith("http")


def _written(cluster: Cluster, fact: WorkCompleted) -> list[Sample]:
    artifact = fact.outputs["samples"]
    holder = next(each for each in cluster.daemons if each.holds(artifact))
    return list(read_samples(holder.state_dir / "store" / artifact[:2] / artifact / "files"))


def assert_trained_once(cluster: Cluster, daemon: Daemon, cycle: CycleState) -> None:
    """The line covers the round's tokens once, as any daemon proves."""
    assert cycle.started is not None
    done = cluster.ctl("data", "audit", cycle.started.cycle, "-o", "json", daemon=daemon)
    assert done.returncode == 0, done.stdout + done.stderr
    (proof,) = json.loads(done.stdout)["audit"]
    assert proof["ok"], proof


def assert_judges_alike(cluster: Cluster, daemon: Daemon, cycle: CycleState) -> None:
    """Any daemon comes to the recorded verdicts again, to the last byte, from their artifacts."""
    assert [*cycle.verdicts] == [each.round for each in cycle.rounds]
    for verdict in cycle.verdicts.values():
        wanted = ("--candidate", verdict.candidate, "-o", "json")
        done = cluster.ctl("gate", "run", *wanted, daemon=daemon)
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(done.stdout)["gate"]
        assert (found["is_same"], found["verdict"]) == (True, verdict.verdict)
        assert found["candidate"] == verdict.candidate


def assert_as_calm(cluster: Cluster, struck: CycleState, calm: CycleState) -> None:
    """Compare with a cycle of the same seed that nobody struck.

    A later round's text may be of a student, too, whose weights are rounded otherwise.
    """
    ours, theirs = struck.manifests[1], calm.manifests[1]
    assert (ours.tokenizer, ours.shards) == (theirs.tokenizer, theirs.shards)
    assert struck.verdicts[1].verdict == calm.verdicts[1].verdict, struck.verdicts[1].reason
    assert struck.verdicts.keys() == calm.verdicts.keys()
    for number, expected in calm.verdicts.items():
        val_bpb = struck.verdicts[number].val_bpb
        told = f"round {number}: {val_bpb:.4f} bits per byte, calm {expected.val_bpb:.4f}"
        assert abs(val_bpb - expected.val_bpb) <= SAME_BPB, told
        assert _texts(cluster, struck, number) == _texts(cluster, calm, number)
    assert _last(struck, 1).tokens == _last(calm, 1).tokens
    learned, calmly = _controls(struck), _controls(calm)
    assert learned.keys() == calmly.keys()
    worst = max((abs(learned[name] - calmly[name]) for name in learned), default=0.0)
    assert worst <= SAME_STUDENT_BPB, (learned, calmly)


def told(cluster: Cluster, cycle: CycleState) -> str:
    """Return what came of a cycle, for people."""
    assert cycle.started is not None
    facts = [fact for fact in _recorded(cluster[0]) if fact.cycle == cycle.started.cycle]
    again = len(facts) - len({fact.item for fact in facts})
    verdicts = (f"{each.verdict} at {each.val_bpb:.4f} bpb" for each in cycle.verdicts.values())
    return (
        f"{cycle.started.cycle}: {', '.join(verdicts)}, loss {_last(cycle, 1).loss:.4f}, "
        f"{len(cycle.attempts_opened)} gangs, {len(cycle.completed)} items, {again} recorded again"
    )


def _texts(cluster: Cluster, cycle: CycleState, number: int) -> dict[str, list[str]]:
    """Return what the server has written in a round: item -> ids of samples, which tell texts."""
    written = (fact for fact in cycle.completed.values() if _is_written(fact, number))
    return {fact.item: [sample.id for sample in _written(cluster, fact)] for fact in written}


def _last(cycle: CycleState, number: int) -> CheckpointCommitted:
    last = cycle.last_checkpoint(number)
    assert last is not None
    return last


def _controls(cycle: CycleState) -> dict[str, float]:
    """Return what the small students of the first round's own text came to."""
    return {
        fact.item: float(str(fact.summary["bpb"]))
        for fact in cycle.completed.values()
        if (fact.round, fact.phase) == (1, Phase.EVALUATE)
        and f"/{PROXIES}/" in fact.item
        and "bpb" in fact.summary
    }


def _recorded(daemon: Daemon) -> list[WorkCompleted]:
    """Return all work that a daemon's entries tell of, also what isn't in force."""
    file = LedgerFile(daemon.state_dir / "ledger.db")
    try:
        entries = [parse(raw) for raw in file.load()]
    finally:
        file.close()
    facts = (fact for entry in entries for fact in entry.facts)
    return [fact for fact in facts if isinstance(fact, WorkCompleted)]
