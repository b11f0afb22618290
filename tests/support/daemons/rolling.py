"""Three daemons that train, whose program is replaced on one after another.

Owns the training run, the replacing, and what must hold after each. Doesn't know which programs
these are.
"""

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from tests.support.daemons.cluster import BIN, Cluster, Daemon, Document, all_gone
from tests.support.daemons.training_runs import write_letters
from tests.support.strikes.wholeness import left_over

NEW: Sequence[str | Path] = (BIN / "jupiterd",)
"""The program of the checkout."""

SEQ_LEN = 64
STEPS = 20_000
"""More than there is time for: the run is stopped at the end."""

TRAIN_TIMEOUT_S = 120.0
TOLD_TIMEOUT_S = 20.0
"""A node tells what it is with its first heartbeat to each other one."""
LEADER_LAST = ("leader last", "leader first", "leader between")


async def begin_training(cluster: Cluster, folder: Path, steps: int = STEPS) -> Document:
    """Start a run; return its document once it trains."""
    letters = write_letters(folder)
    settings = ("--max-steps", str(steps), "--seq-len", str(SEQ_LEN), "--islands", "off")
    settings += ("--gradient-accumulation-steps", "2")
    started = cluster.ctl("train", "start", "--data", str(letters), "--model", "1m", *settings)
    assert started.returncode == 0, started.stderr
    return await trained(cluster, cluster[0], lambda run: run.get("step", 0) >= 20, "20 steps")


async def trained(
    cluster: Cluster,
    asked: Daemon,
    is_so: Callable[[Document], bool],
    what: str,
    timeout_s: float = TRAIN_TIMEOUT_S,
) -> Document:
    """Wait until it holds of the run's document; return that."""
    deadline_s = time.monotonic() + timeout_s
    run: Document = {}
    while time.monotonic() < deadline_s:
        run = ((await asked.ask("train")) or {}).get("train") or {}
        assert run.get("state") != "failed", cluster.failure_text(str(run["failure"]))
        if is_so(run):
            return run
        await asyncio.sleep(0.1)
    raise AssertionError(cluster.failure_text(f"{what}: not within {timeout_s:g} s; {run}"))


async def in_order(cluster: Cluster, leader_at: int) -> list[Daemon]:
    """Return the daemons in the order in which they are replaced: the leader at this place."""
    view = await cluster[0].ask()
    assert view is not None
    leader = cluster.by_id(view["cluster"]["leader"], view)
    others = [daemon for daemon in cluster.daemons if daemon is not leader]
    return [*others[:leader_at], leader, *others[leader_at:]]


@dataclass(frozen=True)
class Seen:
    """How far the run had come before a daemon was stopped."""

    step: int
    attempt: int
    """The newest that was recorded by then: those after it must go on from there."""


async def replaced(cluster: Cluster, daemon: Daemon, command: Sequence[str | Path]) -> Seen:
    """Start another program on a daemon's state folder; return how far the run was before that.

    None of its workers outlives it, and the others train on without it.
    """
    watcher = next(other for other in cluster.daemons if other is not daemon)
    before = await trained(cluster, watcher, lambda run: bool(run.get("gang")), "a gang")
    seen = Seen(before["step"], _newest_attempt(cluster))
    workers = daemon.workers()
    await asyncio.to_thread(daemon.stop)
    assert await all_gone(workers, 5), "a worker outlived its daemon"
    daemon.command = command
    daemon.start()
    await trained(
        cluster,
        watcher,
        lambda run: bool(run.get("gang")) and run["step"] > seen.step,
        f"training beside {daemon.name}, which starts again",
    )
    return seen


async def all_replaced(cluster: Cluster, command: Sequence[str | Path]) -> Seen:
    """Stop all daemons, then start another program on all of them; return how far the run was."""
    before = await trained(cluster, cluster[0], lambda run: bool(run.get("gang")), "a gang")
    seen = Seen(before["step"], _newest_attempt(cluster))
    for daemon in cluster.daemons:
        await asyncio.to_thread(daemon.stop)
    for daemon in cluster.daemons:
        daemon.command = command
        daemon.start()
    await cluster.meet()
    await trained(
        cluster,
        cluster[0],
        lambda run: bool(run.get("gang")) and run["step"] > seen.step,
        "training after all have started again",
    )
    return seen


def _newest_attempt(cluster: Cluster) -> int:
    runs = (run for daemon in cluster.daemons for run in daemon.state().cycles.values())
    return max(max(run.attempts_opened, default=0) for run in runs)


async def stopped(cluster: Cluster) -> CycleState:
    """End the run, and return it once its last state is recorded."""
    ended = cluster.ctl("train", "stop", "--yes")
    assert ended.returncode == 0, ended.stderr
    state = await cluster.recorded(lambda run: run.has_nothing_to_do, "the end of the run", 60)
    await cluster.meet()
    return state


def assert_nothing_was_lost(cluster: Cluster, run: CycleState, seen: Sequence[Seen]) -> None:
    """Each finished step counts once, on every node alike."""
    made = [fact for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)]
    steps = [fact.step for fact in made]
    assert steps == sorted(set(steps))
    starts = {number: attempt.from_step for number, attempt in sorted(run.attempts_opened.items())}
    assert list(starts.values()) == sorted(starts.values())
    for before in seen:
        lost = {n: at for n, at in starts.items() if n > before.attempt and at < before.step}
        assert not lost, cluster.failure_text(f"finished steps were lost: {starts}, {before}")
    for daemon in cluster.daemons:
        audited = cluster.ctl("data", "audit", "-o", "json", daemon=daemon)
        assert audited.returncode == 0, audited.stdout + audited.stderr
        (proof,) = json.loads(audited.stdout)["audit"]
        assert proof["ok"]


async def all_run(cluster: Cluster, program: str) -> None:
    """Wait until every node is known to run this version, everywhere, and has noted it on disk."""
    expected = dict.fromkeys((daemon.name for daemon in cluster.daemons), program)
    deadline_s = time.monotonic() + TOLD_TIMEOUT_S
    for daemon in cluster.daemons:
        while (told := _versions(await daemon.ask())) != expected:
            assert time.monotonic() < deadline_s, cluster.failure_text(f"{daemon.name} sees {told}")
            await asyncio.sleep(0.1)
        assert f"(jupiterd {program})" in (daemon.state_dir / "VERSION").read_text()


def _versions(view: Document | None) -> dict[str, str | None]:
    nodes = [] if view is None else view["nodes"]
    return {n["name"]: n["hardware"].get("versions", {}).get("jupiterd") for n in nodes}


def refusal(command: Sequence[str | Path], state_dir: Path) -> "subprocess.CompletedProcess[str]":
    """Start a daemon that is going to refuse its state folder, and return what it said."""
    options = ("--local", "--port", "0", "--state-dir", state_dir)
    return subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=60, check=False
    )


def identities(cluster: Cluster) -> dict[str, bytes]:
    """Return each daemon's key."""
    return {d.name: (d.state_dir / "key.pem").read_bytes() for d in cluster.daemons}


def assert_nothing_runs(folder: Path) -> None:
    """No process of any program is left."""
    assert left_over(folder, []) == []
