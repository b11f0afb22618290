"""Daemons on the machines of a lab: started as users start them, asked, and waited for.

Owns their processes and what they say of the cluster. Doesn't know what is done to them.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from pathlib import Path

from tests.support.daemons.cluster import Cluster, Daemon, Document, running
from tests.support.network.lab import Host, Lab, lab_of

ASK_TIMEOUT_S = 1.0
LOOK_S = 0.1

Views = Sequence[Document | None]


class Machine(Daemon):
    """One daemon on one machine; what it is told on the command line beside the usual."""

    def __init__(self, folder: Path, host: Host, options: Sequence[str] = ()) -> None:
        super().__init__(folder, f"m{host.number}", host.inside.prefix)
        self.host = host
        self.options = options

    def stop(self) -> None:
        """Ask it to end in order, and don't wait."""
        os.kill(self.pid, signal.SIGTERM)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Hold the process still, as a machine that sleeps."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    async def view(self) -> Document | None:
        """Return what it says of the cluster; None where it says nothing soon."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ASK_TIMEOUT_S):
                return await self.ask()
        return None


class Machines(Cluster):
    """The machines of one test."""

    def __init__(self, machines: Sequence[Machine], lab: Lab) -> None:
        super().__init__(machines)
        self.machines = machines
        self.lab = lab

    def __getitem__(self, number: int) -> Machine:
        return self.machines[number]

    def but(self, *others: Machine) -> list[Machine]:
        """Return all machines but these."""
        return [machine for machine in self.machines if machine not in others]

    async def views(self, among: Sequence[Machine] = ()) -> list[Document | None]:
        """Return what each of these (or all) says of the cluster."""
        return await asyncio.gather(*(machine.view() for machine in among or self.machines))

    async def until_all(
        self,
        is_so: Callable[[Views], bool],
        what: str,
        timeout_s: float,
        among: Sequence[Machine] = (),
    ) -> list[Document]:
        """Look until `is_so` holds of what these (or all) say; return that."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            views = await self.views(among)
            if is_so(views):
                return [view for view in views if view is not None]
            if time.monotonic() > deadline_s:
                told = "\n".join(in_short(view) for view in views)
                raise AssertionError(
                    self.failure_text(f"{what}: not within {timeout_s:g} s\n{told}")
                )
            await asyncio.sleep(LOOK_S)

    async def one_cluster(self, timeout_s: float, among: Sequence[Machine] = ()) -> list[Document]:
        """Wait until these (or all) agree on members, leader and ledger, and see each other."""
        return await self.until_all(are_one, "one cluster", timeout_s, among)

    def leader(self, view: Document) -> Machine:
        """Return the machine that leads, as a view says."""
        found = self.by_id(view["cluster"]["leader"], view)
        return next(machine for machine in self.machines if machine is found)


@contextlib.asynccontextmanager
async def machines_of(
    lab: Lab, folder: Path, options: Sequence[str] = ()
) -> AsyncGenerator[Machines]:
    """Run a daemon on each machine of a lab."""
    machines = [Machine(folder, host, options) for host in lab.hosts]
    async with running(machines):
        yield Machines(machines, lab)


@contextlib.asynccontextmanager
async def machines_on(
    count: int, folder: Path, options: Sequence[str] = ()
) -> AsyncGenerator[Machines]:
    """Run so many machines, each with its daemon."""
    with lab_of(count) as lab:
        async with machines_of(lab, folder, options) as machines:
            yield machines


def are_one(views: Views) -> bool:
    """Say whether all agree, and each has a link of its own to each other."""
    linked = all(
        {node["id"] for node in view["nodes"] if node["addresses"]}.issuperset(ids(views))
        for view in views
        if view is not None
    )
    return agree(views) and linked


def agree(views: Views) -> bool:
    """Say whether all name the same cluster, leader and ledger, and see each other alive."""
    known = [view for view in views if view is not None]
    clusters = [view["cluster"] for view in known]
    return (
        len(known) == len(views)
        and len({(c["id"], c["leader"], c["term"], c["head"]) for c in clusters}) == 1
        and clusters[0]["leader"] in set(ids(known))
        and all(sees(view, *ids(known)) for view in known)
    )


def ids(views: Views) -> list[str]:
    """Return the node ids of those who answered."""
    return [view["node"]["id"] for view in views if view is not None]


def sees(view: Document, *nodes: str) -> bool:
    """Say whether it sees these alive."""
    return {node["id"] for node in view["nodes"] if node["state"] == "alive"}.issuperset(nodes)


def state_of(view: Document, node: str) -> str:
    """Return how a view shows a node: alive, suspect or gone."""
    return next(row["state"] for row in view["nodes"] if row["id"] == node)


def leaders(views: Views) -> set[str]:
    """Return the nodes that say of themselves that they lead."""
    known = [view for view in views if view is not None]
    return {view["node"]["id"] for view in known if view["cluster"]["leader"] == view["node"]["id"]}


def _ways(links: Sequence[Document]) -> str:
    """Return the ways to a node where there are several."""
    told = (
        f"{way['target']} {way['rtt_ms']} ms{' in use' if way['active'] else ''}" for way in links
    )
    return f"[{', '.join(told)}]" if links else ""


def in_short(view: Document | None) -> str:
    """Return a view in one line, for failures."""
    if view is None:
        return "no answer"
    cluster = view["cluster"]
    nodes = " ".join(
        f"{node['name']}:{node['state']}{_ways(node['links'])}" for node in view["nodes"]
    )
    who = f"{view['node']['name']} ({view['node']['id'][:8]})"
    where = f"cluster {cluster['id'][:8]} head {cluster['head'][:8]}"
    return f"{who}: {where} leader {str(cluster['leader'])[:8]} term {cluster['term']} {nodes}"
