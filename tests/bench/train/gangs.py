"""Three daemons that train together for as long as they are wanted, to be struck meanwhile.

Owns their start, and what their logs tell of each change of the attempt. Doesn't know who strikes.
"""

import asyncio
import contextlib
import re
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.support.daemons.adapter_runs import learner
from tests.support.daemons.cluster import Cluster, Daemon, Document, three_daemons
from tests.support.daemons.training_runs import write_letters
from tests.support.network import links
from tests.support.network.lab import lab_of
from tests.support.network.machines import machines_of, machines_on
from tests.support.sources.tiny_domain import write_domain

STEPS = 1_000_000
"""More than any measuring takes."""

START_TIMEOUT_S = 120.0
LOOK_S = 0.02
NO_ANSWER_S = 2.0
_PAIR = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True)
class Change:
    """What the leader has logged of one change of the attempt."""

    attempt: int
    told_at_s: float
    phases: Mapping[str, float]
    """Seconds after that."""

    @property
    def has_trained(self) -> bool:
        return "first_step_s" in self.phases

    @property
    def trained_at_s(self) -> float:
        return self.told_at_s + self.phases["first_step_s"]

    def __str__(self) -> str:
        return "  ".join(f"{name[:-2]} {after_s:.2f}" for name, after_s in self.phases.items())


class Gang:
    """A gang of three that trains."""

    def __init__(self, cluster: Cluster, noun: str = "cycle") -> None:
        self.cluster = cluster
        self._noun = noun
        """What it is of: a cycle, or a run without one."""
        self.asked = cluster[0]
        """Who says how the training goes."""

    async def leader(self) -> Daemon:
        view = await self.asked.ask()
        assert view is not None
        self.asked = self.cluster.by_id(view["cluster"]["leader"], view)
        return self.asked

    async def daemon_of(self, node: str) -> Daemon:
        view = await self.asked.ask()
        assert view is not None
        return self.cluster.by_id(node, view)

    async def trains(self, ranks: int = 3, timeout_s: float = START_TIMEOUT_S) -> Document:
        """Wait until so many ranks have finished a step of their epoch; the leader tells."""

        def is_so(cycle: Document) -> bool:
            is_whole = len(cycle["gang"]) == ranks and all(seat["pid"] for seat in cycle["gang"])
            return is_whole and cycle["step"] > (cycle["resumed_from_step"] or 0)

        what = f"{ranks} ranks that train"
        return await self.cluster.until(is_so, what, timeout_s, self.asked, self._noun)

    async def changed(
        self, attempt: int, among: Sequence[Daemon] = (), timeout_s: float = 60.0
    ) -> Change:
        """Wait until one of these (or all) has logged a change to a later epoch that got to a step.

        An attempt that ended before its first step is part of what the next one took.
        """
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            for daemon in among or self.cluster.daemons:
                later = [change for change in _changes(daemon) if change.attempt > attempt]
                found = [change for change in later if change.has_trained]
                if found:
                    _show_failed(later, daemon)
                    return found[0]
            await asyncio.sleep(LOOK_S)
        raise AssertionError(self.cluster.failure_text(f"no attempt after {attempt}"))


Home = Callable[[Path], AbstractAsyncContextManager[Cluster]]
"""Where the daemons run."""


@contextlib.asynccontextmanager
async def on_machines(folder: Path) -> AsyncGenerator[Cluster]:
    """Let three daemons run on machines of their own, with a cable each."""
    async with machines_on(3, folder) as machines:
        yield machines


@contextlib.asynccontextmanager
async def without_name_server(folder: Path) -> AsyncGenerator[Cluster]:
    """Let them run on machines whose name server never answers, as on a switch with no router."""
    with lab_of(3) as lab:
        losing = (asyncio.to_thread(links.lose_name_server, host) for host in lab.hosts)
        assert min(await asyncio.gather(*losing)) > NO_ANSWER_S, "somebody answers who asks"
        async with machines_of(lab, folder) as machines:
            yield machines


@contextlib.asynccontextmanager
async def training(
    engine: str,
    home: Home = three_daemons,
    *,
    size: str = "1m",
    ranks: int = 3,
    more: Sequence[str] = (),
) -> AsyncGenerator[Gang]:
    """Let the first `ranks` of three daemons train a model, four sequences in a step.

    more: options of `cycle start`
    """
    with tempfile.TemporaryDirectory(prefix="jupiter-bench-") as name:
        folder = Path(name)
        domain = write_domain(folder, STEPS)
        async with home(folder) as cluster:
            await cluster.meet()
            await _pin_roles(cluster, ranks)
            options = ("--domain", domain, "--engine", engine, "--seed", "7", "--size", size, *more)
            started = await asyncio.to_thread(cluster.ctl, "cycle", "start", *map(str, options))
            assert started.returncode == 0, started.stderr
            gang = Gang(cluster)
            await gang.leader()
            await gang.trains(ranks)
            yield gang


@contextlib.asynccontextmanager
async def training_an_adapter(engine: str, home: Home = three_daemons) -> AsyncGenerator[Gang]:
    """Let three daemons train an adapter beside a small model, six sequences in a step."""
    with tempfile.TemporaryDirectory(prefix="jupiter-bench-") as name:
        folder = Path(name)
        letters = write_letters(folder)
        what = learner(folder, letters, lora=True)
        async with home(folder) as cluster:
            await cluster.meet()
            await _pin_roles(cluster, len(cluster.daemons))
            sizes = ("--batch-size", 2, "--gradient-accumulation-steps", 1, "--seq-len", 64)
            options = (*sizes, "--max-steps", STEPS, "--engine", engine, "--seed", 7)
            asked = ("--data", letters, "--model", what.model, *what.options, *options)
            started = await asyncio.to_thread(cluster.ctl, "train", "start", *map(str, asked))
            assert started.returncode == 0, started.stderr
            gang = Gang(cluster, "train")
            await gang.leader()
            await gang.trains()
            yield gang


async def _pin_roles(cluster: Cluster, ranks: int) -> None:
    for number, node in enumerate(cluster.daemons):
        role = "trainer" if number < ranks else "generator"
        pinned = await asyncio.to_thread(cluster.ctl, "node", "role", node.name, role)
        assert pinned.returncode == 0, pinned.stderr


def _show_failed(changes: Sequence[Change], leader: Daemon) -> None:
    """Print the attempts that ended before their first step, and what their leader logged."""
    failed = [change for change in changes if not change.has_trained]
    for change in failed:
        about = f"attempt={change.attempt} "
        lines = leader.log.read_text(errors="replace").splitlines()
        print(f"  attempt {change.attempt} ended before its first step: [{change}]")
        print("\n".join(f"    {line}" for line in lines if about in line), flush=True)


def _changes(daemon: Daemon) -> list[Change]:
    lines = daemon.log.read_text(errors="replace").splitlines()
    return [_change(line) for line in lines if " epoch_changed " in line]


def _change(line: str) -> Change:
    pairs = dict(_PAIR.findall(line))
    del pairs["epoch"]  # what `attempt` was called before
    attempt, told_at_s = int(pairs.pop("attempt")), float(pairs.pop("told_at_s"))
    return Change(attempt, told_at_s, {name: float(value) for name, value in pairs.items()})
