"""A cluster with a long history: how fast facts are folded, and how soon a newcomer is current."""

import asyncio
import json
import re
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from jupiterd.cluster.facts.facts import (
    ClusterFounded,
    CycleStarted,
    CycleStateSet,
    Fact,
    NodeAdmitted,
    WorkCompleted,
)
from jupiterd.cluster.ledger.ledger import EntryWriter, compose, parse, seal
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.ids import ArtifactId, ClusterId, CycleId, NodeId
from jupiterd.net.identity import Identity
from jupiterd.store.layout import LAYOUT
from jupiterd.store.ledger_file import CLUSTER_KEY, LedgerFile
from tests.bench.figure import Figure, Goal
from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network

FACTS = 100_000
FACTS_IN_ENTRY = 10
CYCLE = CycleId("c" * 16)
TIMEOUT_S = 60.0


def shards(count: int, node: NodeId) -> Iterator[Fact]:
    """Yield facts as a long cycle leaves them: one packed shard each."""
    for number in range(count):
        outputs = {"shards": ArtifactId(f"{number:064x}")}
        counts = {"sequences": 1000.0}
        yield WorkCompleted(CYCLE, 1, "pack", f"r1/pack/{number}", node, outputs, counts)


async def apply_facts() -> float:
    """Return facts folded per second into a state that holds 100,000 shards already."""
    node = NodeId("a" * 32)
    state = State()
    for index, fact in enumerate(shards(FACTS, node)):
        state.apply(fact, (1, node, "u", index))
    fresh = [
        WorkCompleted(CYCLE, 2, "pack", f"r2/pack/{number}", node, {}) for number in range(FACTS)
    ]
    began_s = time.perf_counter()
    for index, fact in enumerate(fresh):
        state.apply(fact, (2, node, "u", index))
    return len(fresh) / (time.perf_counter() - began_s)


async def join_late() -> float:
    """Return the seconds from a newcomer's being let in to its having the whole history."""
    with tempfile.TemporaryDirectory() as folder, own_network() as prefix:
        old, new = (Daemon(Path(folder), name, prefix) for name in ("old", "new"))
        await write_history(old.state_dir)
        async with running([old]) as cluster:
            await _leads(cluster)
            assert cluster.ctl("cluster", "open").returncode == 0
            new.start()
            try:
                return await _joined(Cluster([old, new]), new)
            finally:
                await asyncio.to_thread(new.end)


async def write_history(state_dir: Path) -> None:
    """Make a state folder whose ledger holds the facts, of a cycle that was stopped."""
    state_dir.mkdir(mode=0o700)  # noqa: ASYNC240 - nothing else runs on this loop
    identity = Identity.load_or_create(state_dir / "key.pem")
    file = LedgerFile(state_dir / "ledger.db")
    cluster = ClusterId(secrets.token_hex(16))
    file.replace(cluster, list(_entries(identity, cluster)))
    file.set(CLUSTER_KEY, cluster)
    replica = Replica(identity, file)
    assert len(replica.state.cycles[CYCLE].completed) == FACTS
    await replica.compact()
    file.close()
    (state_dir / "VERSION").write_text(f"{LAYOUT}\n")


def _entries(identity: Identity, cluster: ClusterId) -> Iterator[bytes]:
    writer, previous = EntryWriter(identity.node_id, "history"), ""
    for index, facts in enumerate(_batches(identity), 1):
        body = compose(cluster, 1, writer, index, previous, facts)
        raw = seal(body, identity.sign(body))
        previous = parse(raw).hash
        yield raw


def _batches(identity: Identity) -> Iterator[tuple[Fact, ...]]:
    node = identity.node_id
    own = NodeAdmitted(node, "old", identity.certificate_pem, "founded the cluster")
    yield ClusterFounded("jupiter"), own
    domain = "version: 1\ndomain: long\n"
    started = CycleStarted(CYCLE, "long", domain, 1, "1m", 1, "2026-01-01T00:00:00Z")
    yield started, CycleStateSet(CYCLE, "stopped", "it is history", 1)
    waiting = list(shards(FACTS, node))
    for start in range(0, FACTS, FACTS_IN_ENTRY):
        yield tuple(waiting[start : start + FACTS_IN_ENTRY])


async def _leads(cluster: Cluster) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            view = await cluster[0].ask()
            if view is not None and view["cluster"]["leader"] is not None:
                return
            await asyncio.sleep(0.1)


async def _joined(cluster: Cluster, new: Daemon) -> float:
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            views = [await daemon.ask() for daemon in cluster.daemons]
            if all(views) and len({view["cluster"]["head"] for view in views if view}) == 1:
                break
            await asyncio.sleep(0.05)
    told = re.search(r"joined .*elapsed_s=([0-9.]+)", new.log.read_text())
    assert told is not None, json.dumps(new.last_words())
    return float(told[1])


FIGURES = (
    Figure(
        "facts folded into a state of 100,000",
        "facts/s",
        (Goal(0.5, 50_000, at_least=True),),
        apply_facts,
        trials=5,
    ),
    Figure("late joiner with a history of 100,000 facts", "s", (Goal(0.5, 2.0),), join_late, 5),
)
