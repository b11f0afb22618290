"""Follows a cycle, a training run or a data set until it ends.

Owns how long to wait for a lost daemon, and the exit status at the end. Doesn't make the lines
(`progress_lines`).
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
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.output.pause_lines import waits
from jupiterd.ctl.output.phase_lines import heavy_drop_lines
from jupiterd.ctl.output.progress_lines import (
    CYCLE,
    ENDED_STATES,
    TITLES,
    PrintedProgress,
    final_lines,
    next_lines,
    title,
)
from jupiterd.errors import JupiterError, NotFoundError, TimedOutError, from_wire
from jupiterd.ids import short

GIVE_UP_AFTER_S = 60.0
"""Seconds to wait for a daemon that doesn't answer, such as one that restarts."""


MODEL_WAIT_S = 15.0
"""Seconds to wait for a finished training's model to reach this machine."""

STARTS = {
    CYCLE: "jupiterctl cycle start --domain python --size 1m",
    "train": "jupiterctl train start --data FOLDER --model 1m",
    "data": "jupiterctl data prepare FOLDER",
}
"""Noun -> the command that starts one."""

FOLLOWS = {
    CYCLE: "the work goes on; follow it with: jupiterctl cycle watch",
    "train": "the work goes on; follow it with: jupiterctl train watch",
    "data": "the work goes on; jupiterctl data list shows when it is done",
}

ENDS = {
    CYCLE: "; jupiterctl cycle stop ends it",
    "train": "; jupiterctl train stop ends it",
    "data": "",
}
"""Noun -> the text about the command that stops the work, if there is one."""

SHOWS = {
    CYCLE: "jupiterctl cycle status shows how far it came; cycle resume goes on with it",
    "train": "jupiterctl train status shows how far it came; train start --resume goes on with it",
    "data": "jupiterctl data list shows it",
}


def follow(
    state_dir: Path,
    cycle_id: str | None,
    console: Console,
    timeout_s: float | None,
    noun: str = CYCLE,
    answered: int | None = None,
) -> Mapping[str, Any]:
    """Print the progress of a cycle until it ends; return its last document.

    Args:
        state_dir: the daemon's state folder.
        cycle_id: the cycle to follow; None: the one that the daemon shows now.
        console: gets the progress lines, or each document with `-o jsonl`.
        timeout_s: the time limit, in seconds; None: no limit.
        noun: the kind of work: cycle, train or data.
        answered: return also if the cycle waits for an answer, in a pause with a higher `edit`
        than this; None: don't.

    Raises:
        TimedOutError: the time limit has passed; the cycle goes on.
        NotFoundError: there is no cycle to follow.
        DaemonUnreachableError: no daemon answers, or it hasn't returned within GIVE_UP_AFTER_S.
    """

    async def followed() -> Document:
        try:
            async with asyncio.timeout(timeout_s), ControlChannel(state_dir) as channel:
                return await _Follower(channel, console, cycle_id, noun, answered).run()
        except TimeoutError as error:
            raise TimedOutError(
                f"the {TITLES[noun]} hasn't ended within {timeout_s:g} s", FOLLOWS[noun]
            ) from error

    try:
        return asyncio.run(followed())
    except KeyboardInterrupt:  # it ends only this command, not the work
        console.notice(FOLLOWS[noun] + ENDS[noun])
        raise


def conclude(cycle: Mapping[str, Any], console: Console, *, accepts_worse: bool = True) -> None:
    """Print the last lines of a cycle, and what it dropped; raise an error if it failed.

    Raises:
        JupiterError: it failed or was stopped; or given weights got worse, and `accepts_worse`
        isn't set.
    """
    for line in heavy_drop_lines(cycle) if console.is_table else ():
        console.line(line)
    if cycle["state"] == "failed":
        failure = cycle.get("failure") or {}
        raise from_wire(
            failure.get("code", "failed"),
            f"the {title(cycle)} failed: {failure.get('message', 'nobody said why')}",
            failure.get("hint", ""),
        )
    if cycle["state"] == "stopped":
        raise JupiterError(
            f"{title(cycle)} {short(cycle['id'])} was stopped",
            SHOWS[str(cycle.get("kind", CYCLE))],
        )
    if console.is_table:
        for line in final_lines(cycle):
            console.line(line)
    if cycle.get("ended_worse") and not accepts_worse:
        raise JupiterError(
            f"{title(cycle)} {short(cycle['id'])} ended worse than it began",
            "a lower --lr, or more text, may help; --accept-worse ends with status 0",
        )


class _Follower:
    """Follows one cycle, once."""

    def __init__(
        self,
        channel: ControlChannel,
        console: Console,
        cycle_id: str | None,
        noun: str,
        answered: int | None = None,
    ) -> None:
        self._channel = channel
        self._noun = noun
        self._answered = answered
        self._console = console
        self._cycle_id = cycle_id
        self._shown = PrintedProgress()
        self._lost_since_s: float | None = None
        self._finished_s = 0.0

    async def run(self) -> Document:
        """Follow the cycle; return its last document."""
        # The first answer decides whether there is a daemon and a cycle at all.
        document = await self._channel.status(self._noun)
        if self._cycle_id is None:
            self._cycle_id = self._id_of(document)
        # Watch it by its id: a newer cycle mustn't hide the end of this one.
        async with aclosing(watch(self._channel, f"{self._noun}/{self._cycle_id}")) as messages:
            async for message in messages:
                self._note_link(message)
                document = folded(document, message)
                cycle = self._followed_in(document)
                if cycle.get("id") != self._cycle_id:
                    continue
                self._show(cycle, document)
                if not isinstance(message, LinkChanged) and self._is_over(cycle):
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

    def _is_over(self, cycle: Document) -> bool:
        """Return whether following ends; a training's model gets MODEL_WAIT_S to arrive."""
        if self._answered is not None and waits(cycle):
            return bool(cycle["paused"]["edit"] > self._answered)
        if cycle.get("state") != "finished" or cycle.get("kind") != "train" or cycle.get("model"):
            return cycle.get("state") in ENDED_STATES
        self._finished_s = self._finished_s or time.monotonic()
        return time.monotonic() - self._finished_s > MODEL_WAIT_S

    def _followed_in(self, document: Document) -> Document:
        """Return the cycle's document in an answer; empty if there is none."""
        found: Any = document.get(self._noun)
        return found if isinstance(found, dict) else {}

    def _id_of(self, document: Document) -> str:
        found = self._followed_in(document)
        if not found:
            raise NotFoundError(f"no {TITLES[self._noun]} has been started", STARTS[self._noun])
        return str(found["id"])
