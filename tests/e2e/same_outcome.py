"""What must be the same of two cycles of one seed, however often one of them was struck.

Owns these checks. Text and shards agree to the last bit, and with those of one machine that makes
them in one go; what a gang has trained is as good, for its sums are rounded otherwise; a verdict
follows from its artifacts. Doesn't know what was struck.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.entry import parse
from jupiterd.cluster.facts import CheckpointCommitted, WorkCompleted
from jupiterd.cycle.phases.proxies import PROXIES
from jupiterd.cycle.work import Phase
from jupiterd.store.ledger_file import LedgerFile
from jupiterd.workers.data.sample_file import read_samples
from tests.e2e.cluster import Cluster, Daemon
from tests.e2e.wholeness import assert_whole

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
    (manifest,) = cycle.manifests.values()
    packed = cycle.completed[1, "r1/pack/0"]
    assert manifest.shards == (packed.outputs["shards"],)


def assert_generated_once(cluster: Cluster, cycle: CycleState) -> None:
    """No two items wrote the same, or from the same document; nobody wrote less than was asked."""
    made = [fact for fact in cycle.completed.values() if fact.phase == Phase.GENERATE]
    assert made
    parents: Counter[str] = Counter()
    ids: list[str] = []
    for fact in made:
        folder = next(each for each in cluster.daemons if each.holds(fact.outputs["samples"]))
        samples = list(read_samples(_files(folder, fact.outputs["samples"])))
        assert len(samples) == fact.counts["samples"] == fact.counts["prompts"]
        ids += [sample.id for sample in samples]
        parents.update({parent for sample in samples for parent in sample.parents})
    assert len(ids) == len(set(ids)), "two items wrote the same"
    assert set(parents.values()) == {1}, "two items wrote from the same document"


def assert_trained_once(cluster: Cluster, daemon: Daemon, cycle: CycleState) -> None:
    """The line covers the round's tokens once, as any daemon proves."""
    assert cycle.started is not None
    done = cluster.ctl("data", "audit", cycle.started.cycle, "-o", "json", daemon=daemon)
    assert done.returncode == 0, done.stdout + done.stderr
    (proof,) = json.loads(done.stdout)["audit"]
    assert proof["ok"], proof


def assert_judges_alike(cluster: Cluster, daemon: Daemon, cycle: CycleState) -> None:
    """Any daemon comes to the recorded verdict again, to the last byte, from its artifacts."""
    verdict = cycle.verdicts[1]
    wanted = ("--candidate", verdict.candidate, "-o", "json")
    done = cluster.ctl("gate", "run", *wanted, daemon=daemon)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)["gate"]
    assert (found["is_same"], found["verdict"]) == (True, verdict.verdict)
    assert found["candidate"] == verdict.candidate


def assert_as_calm(struck: CycleState, calm: CycleState) -> None:
    """Compare with a cycle of the same seed that nobody struck."""
    ours, theirs = struck.manifests[1], calm.manifests[1]
    assert (ours.tokenizer, ours.shards) == (theirs.tokenizer, theirs.shards)
    verdict, expected = struck.verdicts[1], calm.verdicts[1]
    told = f"val_bpb {verdict.val_bpb:.4f}, {expected.val_bpb:.4f} of the calm one"
    assert abs(verdict.val_bpb - expected.val_bpb) <= SAME_BPB, told
    assert verdict.verdict == expected.verdict, verdict.reason
    assert _end(struck).tokens == _end(calm).tokens
    learned, calmly = _controls(struck), _controls(calm)
    assert learned.keys() == calmly.keys()
    worst = max((abs(learned[name] - calmly[name]) for name in learned), default=0.0)
    assert worst <= SAME_STUDENT_BPB, (learned, calmly)


def told(cluster: Cluster, cycle: CycleState) -> str:
    """Return what came of a cycle, for people."""
    assert cycle.started is not None
    (verdict,) = cycle.verdicts.values()
    facts = [fact for fact in _recorded(cluster[0]) if fact.cycle == cycle.started.cycle]
    again = len(facts) - len({fact.item for fact in facts})
    return (
        f"{cycle.started.cycle}: {verdict.verdict}, val_bpb {verdict.val_bpb:.4f}, "
        f"loss {_end(cycle).loss:.4f}, {len(cycle.epochs_opened)} gangs, "
        f"{len(cycle.completed)} items, {again} recorded again"
    )


def _end(cycle: CycleState) -> CheckpointCommitted:
    last = cycle.last_checkpoint(1)
    assert last is not None
    return last


def _controls(cycle: CycleState) -> dict[str, float]:
    """Return what the small students of the round's own text came to."""
    return {
        fact.item: float(str(fact.summary["bpb"]))
        for fact in cycle.completed.values()
        if fact.phase == Phase.EVALUATE and f"/{PROXIES}/" in fact.item and "bpb" in fact.summary
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


def _files(daemon: Daemon, artifact: str) -> Path:
    return daemon.state_dir / "store" / artifact[:2] / artifact / "files"
