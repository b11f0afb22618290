"""What starts services on this machine: systemd, or launchd.

Owns that choice, and what both offer. Doesn't know how either works.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from jupiterd.errors import ServiceError
from jupiterd.service.service_request import Scope, ServiceRequest
from jupiterd.service.service_status import ServiceStatus
from jupiterd.service.steps import Step


class InitSystem(Protocol):
    """One service of systemd or launchd, installed or not."""

    @property
    def name(self) -> str:
        """Return `systemd` or `launchd`."""
        ...

    @property
    def scope(self) -> Scope:
        """Return whose service it is."""
        ...

    @property
    def file(self) -> Path:
        """Return the file that makes it a service."""
        ...

    def text(self, request: ServiceRequest) -> bytes:
        """Return the content of that file."""
        ...

    def require(self) -> None:
        """Raise ServiceError where systemd or launchd doesn't run here."""
        ...

    def install(
        self, request: ServiceRequest, current: ServiceStatus, *, is_outdated: bool = False
    ) -> Sequence[Step]:
        """Return the steps that install, enable and start it, without those already done.

        is_outdated: another version runs, so that it is started again
        """
        ...

    def uninstall(self) -> Sequence[Step]:
        """Return the steps that end and remove it."""
        ...

    def status(self) -> ServiceStatus:
        """Return how it stands."""
        ...

    def log_command(self, lines: int, *, follows: bool) -> tuple[str, ...]:
        """Return the command that shows its log."""
        ...

    def note(self, request: ServiceRequest) -> str:
        """Return what people must still do or know once it is installed; empty: nothing."""
        ...


def init_system_of(scope: str | None) -> InitSystem:
    """Return the service that was named, or the one that is usual here.

    Raises:
        ServiceError: this system has neither manager.
    """
    return _init_system_of_scope(Scope(scope) if scope else usual_scope())


def init_systems(scope: str | None) -> Sequence[InitSystem]:
    """Return the service that was named, else both that there may be."""
    return [_init_system_of_scope(each) for each in ([Scope(scope)] if scope else Scope)]


def usual_scope() -> Scope:
    """Return whose service is installed where nobody says: on a Mac only a daemon has the LAN."""
    is_of_machine = sys.platform == "darwin" or os.getuid() == 0
    return Scope.SYSTEM if is_of_machine else Scope.USER


def _init_system_of_scope(scope: Scope) -> InitSystem:
    if sys.platform == "darwin":
        from jupiterd.service.launchd import Launchd

        return Launchd(scope)
    if sys.platform == "linux":
        from jupiterd.service.systemd import Systemd

        return Systemd(scope)
    raise ServiceError(f"services on {sys.platform} aren't known", "start it with: jupiterd")
