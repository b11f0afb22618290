"""Where a machine's keys may be shown: each is bound to one host, by the machine's own settings.

Owns the form of that binding, and the decision for one address. Doesn't know where keys are held,
who asked for the address, or how anything is sent.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import urlsplit

from jupiterd import address_ranges

HUB_TOKEN: Final = "HF_TOKEN"  # noqa: S105 - the name of a variable
HUB: Final = "https://huggingface.co"
"""The hub's own host, which its token goes to unless the settings bind it elsewhere."""

KEY_NAME: Final = re.compile(rf"[A-Z][A-Z0-9_]{{0,55}}_API_KEY|{HUB_TOKEN}")
_EXAMPLE: Final = "{OPENAI_API_KEY: https://api.openai.com}"
_PORTS: Final = {"https": 443, "http": 80}


def is_loopback(url: str) -> bool:
    """Say whether only programs of the same machine can reach that address."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return host == "localhost" or address_ranges.is_loopback(host)


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address; empty where it has none, or holds a password."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return ""
    if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if port == _PORTS[parts.scheme] else f":{port}")


@dataclass(frozen=True)
class KeyHosts:
    """What each key of this machine is bound to."""

    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name of the variable that holds a key -> the one origin that it may be shown to."""

    def __str__(self) -> str:
        """Return the form that an environment variable has."""
        return ",".join(f"{name}={origin}" for name, origin in self.hosts.items())

    def allows(self, name: str, url: str) -> bool:
        """Say whether the key in that variable may be shown to that address."""
        usual = HUB if name == HUB_TOKEN else ""
        bound = self.hosts.get(name, usual)
        return bool(bound) and origin_of(url) == bound and is_private_connection(url)


def is_private_connection(url: str) -> bool:
    """Say whether nobody between here and there can read what is sent: TLS, or the same machine."""
    return url.lower().startswith("https://") or is_loopback(url)


def what_to_write(name: str, url: str) -> str:
    """Return what the owner of a machine does so that it shows a key to that address."""
    if not is_private_connection(url):
        return "keys go over https, or to a server on the same machine: give the server https"
    return (
        f"if it is to go there, write api_keys: {{{name}: {origin_of(url)}}} into the jupiter.yaml "
        "of that machine, and restart its jupiterd"
    )


def read_key_hosts(document: object) -> KeyHosts:
    """Read a mapping, or NAME=ADDRESS,... as an environment variable holds it.

    Raises:
        ValueError: it is none, or binds a key to what it can't be shown to.
    """
    if isinstance(document, KeyHosts):
        return document
    if isinstance(document, str):
        pairs = [part.strip().partition("=")[::2] for part in document.split(",") if part.strip()]
    elif isinstance(document, Mapping):
        mapping = cast("Mapping[object, object]", document)
        pairs = [(str(name), str(url)) for name, url in mapping.items()]
    else:
        raise ValueError(f"expected a key's name and its host, such as {_EXAMPLE}")  # noqa: TRY004 - a wrong value
    return KeyHosts({name: _bound(name, url) for name, url in pairs})


def _bound(name: str, url: str) -> str:
    if not KEY_NAME.fullmatch(name):
        raise ValueError(
            f"expected names that end with _API_KEY, or {HUB_TOKEN}, such as {_EXAMPLE}"
        )
    origin = origin_of(url)
    if not origin or not is_private_connection(origin):
        raise ValueError(
            f"expected {name} with an https address, or one of this machine, such as {_EXAMPLE}"
        )
    return origin
