"""What one endpoint is to be: its models, where it listens, and who may ask.

Owns the checks of all that before anything listens. Doesn't know HTTP's server.
"""

import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jupiterd.cluster.serving.access import ANY_ORIGIN, is_loopback_host
from jupiterd.cluster.serving.engine_choice import AUTO
from jupiterd.daemon.runtime.settings import LOOPBACK, SERVE_PORT
from jupiterd.daemon.serving.engines.installed_engines import check_installed
from jupiterd.errors import InvalidSettingError, RefusedError
from jupiterd.ports import Address

DEFAULT_PORT: Final = SERVE_PORT
DEFAULT_HOST: Final = LOOPBACK
DEFAULT_MODELS: Final = ("promoted",)
LEAST_TOKEN_CHARACTERS: Final = 16
MOST_TOKEN_BYTES: Final = 4096
_MAKES_ONE: Final = "openssl rand -hex 32 > FILE; chmod 600 FILE"

_is_origin = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+").fullmatch


@dataclass(frozen=True)
class EndpointPlan:
    """A checked wish for an endpoint."""

    models: tuple[str, ...] = DEFAULT_MODELS
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """0 lets the system choose."""
    token: str = field(default="", repr=False)
    """What clients must send; empty: nothing."""
    origins: tuple[str, ...] = ()
    is_pinned: bool = False
    """It answers on a GPU whether a training wants that or not."""
    engine: str = AUTO
    """What this machine loads models into as long as it is open."""

    @property
    def address(self) -> Address:
        """Return where it is to listen."""
        return Address(self.host, self.port)


def checked_plan(
    models: Sequence[str],
    address: Address,
    token_file: str,
    origins: Sequence[str],
    *,
    is_pinned: bool,
    engine: str = AUTO,
) -> EndpointPlan:
    """Return what was wished for, with the token out of its file.

    Raises:
        InvalidSettingError: a value is wrong, or the file of the token.
        UsageError: there is no such engine.
        MissingExtraError: the engine isn't installed on this machine.
        RefusedError: others were to reach it without a token.
    """
    if bad := [each for each in origins if each != ANY_ORIGIN and not _is_origin(each)]:
        raise InvalidSettingError(
            f"{bad[0]!r} is no origin of pages", "write one as https://chat.example.org, or *"
        )
    check_installed(engine)
    token = token_of(token_file) if token_file else ""
    if not token and not is_loopback_host(address.host):
        raise RefusedError(
            f"an endpoint at {address} could be used by whoever reaches that port",
            f"give it a token (--token FILE, or token: in jupiter.yaml; {_MAKES_ONE}), "
            "or leave --host out: then only this machine reaches it",
        )
    names = tuple(dict.fromkeys(models)) or DEFAULT_MODELS
    return EndpointPlan(names, address.host, address.port, token, tuple(origins), is_pinned, engine)


def token_of(name: str) -> str:
    """Return the token that a file holds.

    Raises:
        InvalidSettingError: it can't be read, holds none, or others may read it.
    """
    path = Path(name).expanduser()
    try:
        with path.open(encoding="ascii") as file:
            mode = path.stat().st_mode
            text = file.read(MOST_TOKEN_BYTES).strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it holds no plain text"
        raise InvalidSettingError(
            f"no token can be read from {path}: {reason}", f"make one: {_MAKES_ONE}"
        ) from error
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        raise InvalidSettingError(
            f"others on this machine may read the token in {path}", f"chmod 600 {path}"
        )
    if len(text) < LEAST_TOKEN_CHARACTERS or not text.isprintable() or " " in text:
        raise InvalidSettingError(
            f"{path} holds no token: one line of {LEAST_TOKEN_CHARACTERS} characters or more",
            f"make one: {_MAKES_ONE}",
        )
    return text
