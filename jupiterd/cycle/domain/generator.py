"""A generator that others made: a model in the store, or a server that answers like OpenAI's.

Owns what is recorded of it, and the checks. A key is named by the environment variable that holds
it, and never held here. Doesn't know how it is brought or asked.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final
from urllib.parse import urlsplit

from jupiterd.errors import UsageError
from jupiterd.protocol.frames import Scalar

API_KEY_NAME: Final = r"^([A-Z][A-Z0-9_]{0,55}_API_KEY)?$"
"""Which variables may be named; a member can't have others read out this way."""

HINT: Final = "give a model's folder, ORG/NAME on the Hugging Face hub, or a server: http://HOST:PORT/v1#MODEL"
_ARTIFACT: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Generator:
    """A model that others made; one of `artifact` and `url` says where it is."""

    name: str
    """What people call it."""
    artifact: str = ""
    """The model folder's id."""
    url: str = ""
    """The server's base address, such as http://box:11434/v1."""
    model: str = ""
    """What the server calls it."""
    api_key_env: str = field(default="", repr=False)
    node: str = ""
    """The one node that can reach the server; empty: any may ask it."""

    def to_plain(self) -> dict[str, Scalar]:
        """Return what a fact holds of it, without what is empty."""
        return {name: value for name, value in asdict(self).items() if value}

    @property
    def id(self) -> str:
        """What samples name as their generator."""
        return self.artifact or f"{self.url}#{self.model}"


def generator_from(plain: Mapping[str, object]) -> Generator | None:
    """Return the generator that is described; None where nothing is said.

    Raises:
        UsageError: it can't be one.
    """
    if not plain:
        return None
    known = {name: str(plain[name]) for name in Generator.__dataclass_fields__ if name in plain}
    found = Generator(**({"name": ""} | known))
    if bool(found.artifact) == bool(found.url):
        raise UsageError("a generator is either a model or a server", HINT)
    if found.artifact and not _ARTIFACT.fullmatch(found.artifact):
        raise UsageError(f"{found.artifact[:80]} is no artifact's id", HINT)
    if found.url:
        check_address(found.url, found.model)
    check_key_name(found.api_key_env)
    return found


def is_server(text: str) -> bool:
    """Say whether people mean a server."""
    return text.startswith(("http://", "https://"))


def server_parts(text: str) -> tuple[str, str]:
    """Return the address and the model of http://HOST:PORT/v1#MODEL; no model: an empty one."""
    address, _, model = text.partition("#")
    return address.rstrip("/"), model


def check_address(url: str, model: str) -> None:
    """Raise UsageError where that is no server's address, or no model is named."""
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError as error:
        raise UsageError(f"{url[:200]} is no address: {error}", HINT) from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or not has_port or parts.query:
        raise UsageError(f"{url[:200]} is no server's address", HINT)
    if parts.username or parts.password:
        raise UsageError(
            "a generator's address mustn't hold a password: it would be recorded",
            "put the key into a variable and name that: --api-key-env NAME_API_KEY",
        )
    if not model:
        raise UsageError(f"{url} doesn't say which model", f"write {url}#MODEL")


def check_key_name(name: str) -> None:
    """Raise UsageError where that variable may not be named."""
    if not re.match(API_KEY_NAME, name):
        raise UsageError(
            f"{name[:80]} can't be named as the variable that holds the key",
            "use capital letters, digits and _, and let its name end with _API_KEY",
        )
