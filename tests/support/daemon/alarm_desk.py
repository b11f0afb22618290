"""What every case of an alarm needs: a daemon that leads, and a clock that a test puts forward."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import NodeAdmitted
from jupiterd.cluster.membership.failure_detector import Heard
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.runtime import clock
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import ClusterId, NodeId
from jupiterd.ports import Address
from tests.support.daemon.shown import status_of
from tests.support.daemon.two_nodes import found, lead, serving

OTHER = NodeId("b" * 32)
THERE = Address("10.57.0.2", 47470)
ATTIC = ClusterId("a" * 32)
HOUR_S = 3601.0
GIB = 1 << 30


class AdvancedTime:
    """The module `time`, as the daemon's clocks read it, with its clocks put forward."""

    CLOCK_BOOTTIME = CLOCK_MONOTONIC = time.CLOCK_MONOTONIC

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def clock_gettime(self, clock_id: int) -> float:
        return time.clock_gettime(clock_id) + self.ahead_s


Ending = AsyncIterator[None]
"""Raises an alarm, yields, and ends its cause."""


class Desk:
    """A daemon that leads a cluster of its own, its clock, and whatever else a case needs."""

    def __init__(self, folder: Path, stack: AsyncExitStack, patch: pytest.MonkeyPatch) -> None:
        self._folder, self._stack, self.patch = folder, stack, patch
        self._time = AdvancedTime()
        patch.setattr(clock, "time", self._time)

    async def start(self, name: str = "one", **told: Any) -> None:
        """Start a daemon, in the place of the one before."""
        self.node: Node = await self._stack.enter_async_context(serving(self._folder, name, **told))
        self.own = self.node.identity.node_id

    async def lead(self, *facts: Any) -> None:
        await found(self.node, facts=facts)
        self.node.heartbeats.election._leader = self.own
        await lead(self.node)
        self.node.local_view.hardware = replace(self.node.hardware, engines=("torch",))
        self.codes()

    async def with_other(self, reason: str = "window open") -> None:
        """Admit another machine that answers."""
        await self.lead(NodeAdmitted(OTHER, "other", b"certificate", reason))
        self.node.heartbeats.roster_changed()
        self.node.heartbeats.election._leader = self.own
        self.hear_other()

    def hear_other(self) -> None:
        self.node.heartbeats.membership.step(now_s(), Heard(OTHER))

    def pass_s(self, seconds: float) -> None:
        self._time.ahead_s += seconds

    def codes(self) -> set[str]:
        """Look; return the codes of all that is said to be wrong, in health and by alerts."""
        self.node.observers.alerts.look(now_s())
        raised = {alert.code for alert in self.node.observers.alerts.raised}
        return raised | {line["code"] for line in status_of(self.node)["health"]}
