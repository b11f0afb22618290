"""Who keeps services on this machine: systemd, or launchd.

Owns that choice. Doesn't know how either works.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from jupiterd.errors import ServiceError
from jupiterd.service.asked import Asked, Scope
from jupiterd.service.seen import Seen
from jupiterd.service.steps import Step


class Keeper(Protocol):
    """One service of one manager, installed or not."""

    @property
    def name(self) -> str:
        """Return the manager's name."""
        ...

    @property
    def scope(self) -> Scope:
        """Return whose service it is."""
        ...

    @property
    def file(self) -> Path:
        """Return the file that makes it a service."""
        ...

    def text(self, asked: Asked) -> bytes:
        """Return what that file is to say."""
        ...

    def require(self) -> None:
        """Raise ServiceError where the manager isn't here."""
        ...

    def install(self, asked: Asked, seen: Seen, *, is_outdated: bool = False) -> Sequence[Step]:
        """Return what installs, enables and starts it; nothing twice.

        What runs is of another version where it is outdated, and started anew.
        """
        ...

    def uninstall(self) -> Sequence[Step]:
        """Return what ends and removes it."""
        ...

    def seen(self) -> Seen:
        """Return how it stands."""
        ...

    def log_command(self, lines: int, *, follows: bool) -> tuple[str, ...]:
        """Return what shows its log."""
        ...

    def note(self, asked: Asked) -> str:
        """Return what people are to know once it is installed; empty where that is nothing."""
        ...


def keeper_of(scope: str | None) -> Keeper:
    """Return the service that was named, or the one that is usual here.

    Raises:
        ServiceError: this system has neither manager.
    """
    return _keeper(Scope(scope) if scope else usual_scope())


def keepers(scope: str | None) -> Sequence[Keeper]:
    """Return the service that was named, else both that there may be."""
    return [_keeper(each) for each in ([Scope(scope)] if scope else Scope)]


def usual_scope() -> Scope:
    """Return whose service is installed where nobody says: on a Mac only a daemon has the LAN."""
    is_of_machine = sys.platform == "darwin" or os.getuid() == 0
    return Scope.SYSTEM if is_of_machine else Scope.USER


def _keeper(scope: Scope) -> Keeper:
    if sys.platform == "darwin":
        from jupiterd.service.launchd import Launchd

        return Launchd(scope)
    if sys.platform == "linux":
        from jupiterd.service.systemd import Systemd

        return Systemd(scope)
    raise ServiceError(f"services on {sys.platform} aren't known", "start it with: jupiterd")
