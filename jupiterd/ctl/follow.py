"""Following a cycle until it ends.

Owns how long a lost daemon is waited for, and what the end of a cycle means for the exit status.
Doesn't know what the lines say (`progress_lines`).
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from jupiterd.client.channel import ControlChannel, Document
from jupiterd.client.reachability import unreachable
from jupiterd.client.watch import Link, LinkChanged, WatchMessage, folded, watch
from jupiterd.ctl.console import Console
from jupiterd.ctl.progress_lines import ENDED_STATES, Shown, final_lines, next_lines
from jupiterd.errors import JupiterError, NotFoundError, TimedOutError, from_wire
from jupiterd.ids import short

GIVE_UP_AFTER_S = 60.0
"""A daemon that is started again within this time is followed on; the cycle survives it too."""


def follow(
    state_dir: Path, cycle_id: str | None, console: Console, timeout_s: float | None
) -> Mapping[str, Any]:
    """Print how the cycle goes until it ends; return its last document.

    Args:
        state_dir: of the daemon to ask.
        cycle_id: the cycle to follow; None takes the one that the daemon shows now.
        console: gets a line for each thing that happens, or each document with `-o jsonl`.
        timeout_s: how long to wait; None waits for ever.

    Raises:
        TimedOutError: the time is up; the cycle goes on.
        NotFoundError: there is no cycle to follow.
        DaemonUnreachableError: nobody answers, or nobody came back.
    """

    async def followed() -> Document:
        try:
            async with asyncio.timeout(timeout_s), ControlChannel(state_dir) as channel:
                return await _Follower(channel, console, cycle_id).run()
        except TimeoutError as error:
            raise TimedOutError(f"the cycle hasn't ended within {timeout_s:g} s") from error

    return asyncio.run(followed())


def conclude(cycle: Mapping[str, Any], console: Console) -> None:
    """Print the end of a cycle; raise what it failed with, if it did."""
    if cycle["state"] == "failed":
        failure = cycle.get("failure") or {}
        raise from_wire(
            failure.get("code", "failed"),
            f"the cycle failed: {failure.get('message', 'nobody said why')}",
            failure.get("hint", ""),
        )
    if cycle["state"] == "stopped":
        raise JupiterError(
            f"cycle {short(cycle['id'])} was stopped",
            "jupiterctl cycle status shows how far it came; cycle resume goes on with it",
        )
    if console.is_table:
        for line in final_lines(cycle):
            console.line(line)


class _Follower:
    """One following of one cycle."""

    def __init__(self, channel: ControlChannel, console: Console, cycle_id: str | None) -> None:
        self._channel = channel
        self._console = console
        self._cycle_id = cycle_id
        self._shown = Shown()
        self._lost_since_s: float | None = None

    async def run(self) -> Document:
        """Return the cycle's document once it has ended."""
        # The first answer decides whether there is a daemon and a cycle at all.
        document = await self._channel.status("cycle")
        if self._cycle_id is None:
            self._cycle_id = _id_of(document)
        # That one and no other: a newer cycle mustn't hide the end of ours.
        async with aclosing(watch(self._channel, f"cycle/{self._cycle_id}")) as messages:
            async for message in messages:
                self._note_link(message)
                document = folded(document, message)
                cycle: Document = document.get("cycle") or {}
                if cycle.get("id") != self._cycle_id:
                    continue
                self._show(cycle, document)
                if cycle.get("state") in ENDED_STATES and not isinstance(message, LinkChanged):
                    return cycle
        raise unreachable(self._channel.state_dir)

    def _show(self, cycle: Document, document: Document) -> None:
        if self._console.output == "jsonl":
            self._console.show(document, list)
        if not self._console.is_table:
            return
        self._shown, lines = next_lines(self._shown, cycle, time.monotonic())
        for line in lines:
            if line.is_passing:
                self._console.passing_line(line.text)
            else:
                self._console.line(line.text)

    def _note_link(self, message: WatchMessage) -> None:
        if not isinstance(message, LinkChanged) or message.link is Link.STALE:
            return
        if message.link is Link.LIVE:
            if self._lost_since_s is not None:
                self._console.notice("connected again")
            self._lost_since_s = None
        elif message.link is Link.LOST:
            if self._lost_since_s is None:
                self._console.notice(f"{message.reason}; trying again")
                self._lost_since_s = time.monotonic()
            if time.monotonic() - self._lost_since_s > GIVE_UP_AFTER_S:
                raise unreachable(self._channel.state_dir)


def _id_of(document: Document) -> str:
    cycle = document.get("cycle")
    if not cycle:
        raise NotFoundError(
            "no cycle has been started", "jupiterctl cycle start --domain python --size 1m"
        )
    return str(cycle["id"])
