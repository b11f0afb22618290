"""One cluster of three daemons for all tests that change nothing that lasts.

Owns starting it, and parting with it when a test has left anything behind, so that none sees what
another did. Doesn't know the tests.
"""

import contextlib
from pathlib import Path

from jupiterd.store.ledger_file import LedgerFile
from tests.support.daemons.cluster import NAMES, Cluster, Daemon
from tests.support.daemons.surroundings import own_network


class SharedCluster:
    """Lends its cluster to one test after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ends = contextlib.ExitStack()
        self._cluster: Cluster | None = None
        self._before: list[tuple[int, int]] = []
        self._count = 0

    async def lend(self) -> Cluster:
        """Return daemons that have met, as they would be had no other test had them."""
        if self._cluster is None:
            self._cluster = self._started()
        await self._cluster.meet()
        self._before = traces(self._cluster)
        return self._cluster

    def take_back(self) -> None:
        """Keep it for the next test, unless that would see what this one has done."""
        if self._cluster is not None and traces(self._cluster) != self._before:
            self.end()

    def end(self) -> None:
        """End the daemons; the next test has others."""
        self._ends.close()
        self._cluster = None

    def _started(self) -> Cluster:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        prefix = self._ends.enter_context(own_network())
        daemons = [Daemon(folder, name, prefix) for name in NAMES]
        for daemon in daemons:
            self._ends.callback(daemon.end)
            daemon.start()
        return Cluster(daemons)


def traces(cluster: Cluster) -> list[tuple[int, int]]:
    """Return what tells whether a test has left something: processes that run, and entries."""
    return [
        (daemon.pid if not daemon.workers() and _runs(daemon) else 0, _entries(daemon))
        for daemon in cluster.daemons
    ]


def _runs(daemon: Daemon) -> bool:
    return daemon.process is not None and daemon.process.poll() is None


def _entries(daemon: Daemon) -> int:
    file = LedgerFile(daemon.state_dir / "ledger.db")
    try:
        return sum(1 for _ in file.load())
    finally:
        file.close()
