"""The daemon's settings and where each comes from.

Owns the names, defaults and the order flag, environment, jupiter.yaml, default. Read once at start,
never at import.
"""

import ipaddress
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from jupiterd.cluster.tokens import parse_token
from jupiterd.cycle.yaml_text import YamlMistakesError, parse_yaml
from jupiterd.errors import InvalidSettingError, UsageError
from jupiterd.locations import default_state_dir
from jupiterd.ports import Address

DEFAULT_PORT = 47470
"""Where jupiterd listens unless told otherwise, so that `--peer HOST` needs no port."""

ENVIRONMENT_PREFIX = "JUPITER_"

LIST_SEPARATOR = ","


class Settings(BaseModel):
    """Everything the daemon is told from outside; frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(default_factory=platform.node, min_length=1, max_length=64)
    """The node's name in tables and logs; not its identity. Default: the host name."""

    state_dir: Path = Field(default_factory=default_state_dir)
    """The folder with key, ledger, artifacts and logs."""

    port: int = Field(default=DEFAULT_PORT, ge=0, le=65535)
    """TCP port for other nodes; 0 lets the system choose, and mDNS tells the others."""

    interface: tuple[str, ...] = ()
    """Network interfaces to use; default: all."""

    peer: tuple[str, ...] = ()
    """HOST, HOST:PORT or [IPv6]:PORT of other nodes, where multicast doesn't reach them."""

    scope: str = Field(default="", max_length=64)
    """Find by multicast only daemons of the same scope; default: those without one."""

    join: str = ""
    """A join token of the cluster that this node is to be in, and of no other."""

    closed: bool = False
    """A cluster that this node founds lets nobody in unless somebody opens it or approves them."""

    trust_lan: bool = False
    """While this node leads, whoever is on the network may join at any time."""

    threads: int = Field(default=0, ge=0, le=4096)
    """Threads that each worker process computes with; 0 means one for each core."""

    local: bool = False
    """Use the loopback interface only, for several daemons on one machine."""

    @field_validator("join")
    @classmethod
    def _check_token(cls, value: str) -> str:
        try:
            return str(parse_token(value)) if value else ""
        except UsageError as error:
            raise ValueError(error.message) from error

    @field_validator("interface", "peer", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(LIST_SEPARATOR) if part.strip())
        return value

    @field_validator("peer")
    @classmethod
    def _check_peers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            parse_address(text)
        return value

    def peer_addresses(self) -> tuple[Address, ...]:
        """Return the static peers."""
        return tuple(parse_address(text) for text in self.peer)


def parse_address(text: str) -> Address:
    """Read HOST, HOST:PORT, IPv6 or [IPv6]:PORT; raises ValueError where it is none of them."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    if not host or _is_bad_ipv6(host) or (port and not (port.isdigit() and 0 < int(port) < 65536)):
        raise ValueError(f"{text!r} is not HOST, HOST:PORT or [IPv6]:PORT")
    return Address(_in_short(host), int(port) if port else DEFAULT_PORT)


def _is_bad_ipv6(host: str) -> bool:
    try:
        return ":" in host and not ipaddress.IPv6Address(host)
    except ValueError:
        return True


def _in_short(host: str) -> str:
    """Return an IPv6 address in the one form that all others have too."""
    return str(ipaddress.IPv6Address(host)) if ":" in host else host


def load_settings(
    flags: Mapping[str, Any], environment: Mapping[str, str], config: Path | None
) -> tuple[Settings, dict[str, str]]:
    """Return the settings, and for each the source it was taken from.

    Args:
        flags: values given on the command line; those not given are absent.
        environment: usually `os.environ`.
        config: jupiter.yaml, where one was named.

    Raises:
        InvalidSettingError: a value is wrong or a key unknown; the source is named.
    """
    values: dict[str, Any] = {}
    sources = dict.fromkeys(Settings.model_fields, "default")
    from_environment = {
        name: environment[ENVIRONMENT_PREFIX + name.upper()]
        for name in Settings.model_fields
        if ENVIRONMENT_PREFIX + name.upper() in environment
    }
    for source, found in (
        (str(config), _read(config) if config else {}),
        ("environment", from_environment),
        ("flag", flags),
    ):
        values.update(found)
        sources.update(dict.fromkeys(found, source))
    try:
        return Settings(**values), sources
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        wrong = first["msg"].removeprefix("Value error, ")
        source = sources.get(name, "unknown")
        raise InvalidSettingError(f"{name} (from {source}): {wrong}") from error


def environment() -> Mapping[str, str]:
    """Return the process environment; the only place where the daemon reads it."""
    return os.environ


def _read(config: Path) -> dict[str, Any]:
    try:
        text = config.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidSettingError(f"{config} can't be read: {reason}") from error
    if all(line.lstrip()[:1] in {"", "#"} for line in text.splitlines()):
        return {}
    try:
        return parse_yaml(text, str(config), Settings).model_dump(exclude_unset=True)
    except YamlMistakesError as error:
        raise InvalidSettingError(error.mistakes[0]) from error
