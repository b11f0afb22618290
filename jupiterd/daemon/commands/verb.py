"""One verb: what is asked for, who carries it out, and what is added before it goes there.

Owns the form of a row of the table of verbs. Doesn't know any verb (`verb_table`), or how a command
comes to the leader (`commands`).
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.protocol.commands.command import Command

CommandResult = Mapping[str, object]
"""What came of a command, as a document without its schema."""

C = TypeVar("C", bound=Command)


class Where(StrEnum):
    """Who carries a verb out."""

    LOCAL = "local"
    """The daemon that is asked: it changes nothing for the cluster."""
    LEADER = "leader"


@dataclass(frozen=True)
class Preparation:
    """What the daemon that is asked adds to a command, of its machine's disk, or what it sees."""

    before_order: Callable[[Command], Awaitable[Command]]
    before_try: Callable[[Command, Collection[str]], Awaitable[Command]]
    """The same where it is only tried; takes the folders whose models are yet to be fetched."""


@dataclass(frozen=True)
class Verb:
    """One row."""

    request: type[Command]
    where: Where
    carry_out: Callable[[TermServices | None, Command], Awaitable[CommandResult]]
    """Takes the parts of the term at the leader, and None elsewhere."""
    preparation: Preparation | None = None
    forecast: Callable[[TermServices, Command], Awaitable[CommandResult]] | None = None
    """Says what would come of it, with all its checks."""
    longest_s: float | None = None
    """How long it may take, while the leader goes on with other commands; None: one at a time."""

    @property
    def name(self) -> str:
        """Return it as it travels."""
        return self.request.VERB

    @property
    def is_long(self) -> bool:
        """Say whether others go on meanwhile."""
        return self.longest_s is not None


def local(request: type[C], carry_out: Callable[[C], Awaitable[CommandResult]]) -> Verb:
    """Return a verb that the daemon carries out that is asked."""

    async def carry(_services: TermServices | None, command: Command) -> CommandResult:
        return await carry_out(_of_kind(request, command))

    return Verb(request, Where.LOCAL, carry)


def at_leader(
    request: type[C],
    carry_out: Callable[[TermServices, C], Awaitable[CommandResult]],
    preparation: Preparation | None = None,
    forecast: Callable[[TermServices, C], Awaitable[CommandResult]] | None = None,
    longest_s: float | None = None,
) -> Verb:
    """Return a verb that the leader carries out."""

    async def carry(services: TermServices | None, command: Command) -> CommandResult:
        if services is None:
            raise TypeError(f"{request.VERB} needs a term")
        return await carry_out(services, _of_kind(request, command))

    predict = None if forecast is None else _checked_forecast(request, forecast)
    return Verb(request, Where.LEADER, carry, preparation, predict, longest_s)


def prepared(
    request: type[C],
    before_order: Callable[[C], Awaitable[C]],
    before_try: Callable[[C, Collection[str]], Awaitable[C]] | None = None,
) -> Preparation:
    """Return what is added to commands of a kind, by default the same where they are only tried."""

    async def ordered(command: Command) -> Command:
        return await before_order(_of_kind(request, command))

    async def tried(command: Command, to_fetch: Collection[str]) -> Command:
        if before_try is None:
            return await before_order(_of_kind(request, command))
        return await before_try(_of_kind(request, command), to_fetch)

    return Preparation(ordered, tried)


def _checked_forecast(
    request: type[C], forecast: Callable[[TermServices, C], Awaitable[CommandResult]]
) -> Callable[[TermServices, Command], Awaitable[CommandResult]]:
    async def predict(services: TermServices, command: Command) -> CommandResult:
        return await forecast(services, _of_kind(request, command))

    return predict


def _of_kind(request: type[C], command: Command) -> C:
    if not isinstance(command, request):
        raise TypeError(f"{command.VERB} isn't {request.VERB}")
    return command
