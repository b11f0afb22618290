"""The ranks of a launch on another machine, which supervises them; followed through our daemon.

Owns following them across network failures and restarts of either daemon: the other machine stores
their output, and each new call reads on from the last offset. Doesn't know further machines, or
what the end of a rank means.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from jupiterd.errors import (
    DaemonUnreachableError,
    PeerUnreachableError,
    TimedOutError,
    from_wire,
)
from jupiterd.processes.script_messages import event_from_proto, order_to_proto, window_to_proto
from jupiterd.processes.script_plan import MachinePart, ScriptOrder
from jupiterd.processes.scripts.events import Ended, Over, ScriptEvent
from jupiterd.processes.scripts.script_supervisor import RECONNECT_S
from jupiterd.rpc.script_pb2 import ScriptAsked, ScriptFollow, ScriptRequest
from jupiterd.rpc.script_pb2 import ScriptEvent as ProtoEvent

if TYPE_CHECKING:
    from jupiterd.client.channel import ControlChannel

KEEPALIVE_S: Final = 2.0
"""Seconds between two requests that show that this process is alive."""

SILENCE_S: Final = 6.0
"""Seconds without a message after which the call is repeated: its connection may be dead."""

RETRY_S: Final = 0.5
REPORT_SILENCE_AFTER_S: Final = 3.0

_PASSING = (PeerUnreachableError, DaemonUnreachableError, TimedOutError)
"""Errors after which the call is repeated."""

Notify = Callable[[str], None]


class RemoteSite:
    """The ranks on one other machine."""

    def __init__(
        self, channel: "ControlChannel", place: MachinePart, order: ScriptOrder, notify: Notify
    ) -> None:
        self.name = place.name
        self.processes = place.processes
        self._channel = channel
        self._node = place.node
        self._keeps_parts = place.keeps_parts
        self._order = order
        self._notify = notify
        self._running = {rank.rank for rank in order.ranks}
        self._requests: asyncio.Queue[ScriptRequest] = asyncio.Queue()
        self._offset = 0
        self._has_begun = self._is_silence_reported = self._is_abandoned = False
        self._last_message_s = time.monotonic()
        self._signalled: tuple[float, ScriptRequest] | None = None
        self._listening: asyncio.Timeout | None = None

    async def events(self) -> AsyncGenerator[ScriptEvent]:
        """Yield the events of the ranks until all have ended.

        Raises:
            PeerUnreachableError: the machine sent nothing for too long.
            JupiterError: the machine refuses, or its ranks are lost.
        """
        self._last_message_s = time.monotonic()
        while True:
            try:
                async with aclosing(self._call()) as events:
                    async for event in events:
                        yield event
                        if isinstance(event, Over):
                            return
                if not self._running:
                    return
                self._check_patience(f"{self.name} broke off")
            except _PASSING as error:
                self._check_patience(error.message)
            await asyncio.sleep(RETRY_S)

    async def signal(self, number: int) -> None:
        """Send a signal to the ranks that still run, as soon as the machine can be reached."""
        if self._running:
            request = ScriptRequest(signal=number)
            self._signalled = (time.monotonic(), request)
            await self._requests.put(request)

    async def resize(self, rows: int, columns: int) -> None:
        """Set the size of the ranks' terminals, in rows and columns."""
        await self._requests.put(ScriptRequest(window=window_to_proto((rows, columns))))

    def give_up(self) -> None:
        """Stop waiting for a machine that can't be reached: its ranks end by themselves."""
        self._is_abandoned = True
        if self._listening is not None and not self._keeps_parts:
            self._listening.reschedule(asyncio.get_running_loop().time())

    async def _call(self) -> AsyncGenerator[ScriptEvent]:
        call = self._channel.open_script(self._requests_to_send())
        messages = aiter(call)
        try:
            with self._channel.translated():
                while (message := await self._next(messages)) is not None:
                    self._note_message(message.offset)
                    if (event := event_from_proto(message)) is not None:
                        yield self._checked(event)
        finally:
            call.cancel()

    async def _next(self, messages: AsyncIterator[ProtoEvent]) -> ProtoEvent | None:
        """Return the next message; None: the end. For older versions, silence has no limit."""
        try:
            async with asyncio.timeout(SILENCE_S if self._keeps_parts else None) as self._listening:
                return await anext(messages)
        except TimeoutError as error:
            raise TimedOutError(f"{self.name} says nothing") from error
        except StopAsyncIteration:
            return None
        finally:
            self._listening = None

    def _checked(self, event: ScriptEvent) -> ScriptEvent:
        if isinstance(event, Ended):
            self._running.discard(event.rank)
        if isinstance(event, Over) and event.code:
            raise from_wire(event.code, event.reason, event.hint)
        return event

    def _note_message(self, offset: int) -> None:
        self._has_begun = True
        self._offset = max(self._offset, offset)
        self._last_message_s = time.monotonic()
        self._signalled = None
        if self._is_silence_reported:
            self._is_silence_reported = False
            self._notify(f"{self.name} is heard of again")

    async def _requests_to_send(self) -> AsyncGenerator[ScriptRequest]:
        yield self._first()
        if self._signalled is not None:  # the last call may have lost it
            yield self._signalled[1]
        while True:
            try:
                async with asyncio.timeout(KEEPALIVE_S):
                    request = await self._requests.get()
            except TimeoutError:
                request = ScriptRequest(asked=ScriptAsked())
            yield request

    def _first(self) -> ScriptRequest:
        if not self._has_begun:
            return ScriptRequest(node=self._node, order=order_to_proto(self._order))
        follow = ScriptFollow(id=self._order.id, offset=self._offset)
        return ScriptRequest(node=self._node, follow=follow)

    def _check_patience(self, why: str) -> None:
        """Notify once that the machine is silent; raise PeerUnreachableError after its time limit.

        The limit is `cut_timeout_s`, plus the time that a reconnection takes.
        """
        silent_s = time.monotonic() - self._last_message_s
        limit_s = self._order.cut_timeout_s
        if not self._keeps_parts:
            raise PeerUnreachableError(
                f"{self.name} can't be reached any more: {why}",
                "its ranks ended with the call; a newer jupiterd there outlasts a cut network",
            )
        if self._is_abandoned:
            raise PeerUnreachableError(
                f"{self.name} can't be reached: {why}",
                f"its ranks end there by themselves within {limit_s + RECONNECT_S:.0f} s",
            )
        if silent_s > limit_s + RECONNECT_S:
            raise PeerUnreachableError(
                f"{self.name} wasn't heard of for {silent_s:.0f} s: {why}",
                "its ranks end there by themselves; --cut-timeout says how long it is waited for",
            )
        if silent_s > REPORT_SILENCE_AFTER_S and not self._is_silence_reported:
            self._is_silence_reported = True
            self._notify(
                f"{self.name} isn't heard of ({why}); the script goes on, and waits for it"
                f" up to {limit_s} s"
            )
