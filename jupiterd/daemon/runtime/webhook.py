"""The address to which alerts are sent, which is a secret: whoever has it can write there.

Owns reading it, hiding it wherever it might be shown, and which form it is spoken to in. Doesn't
know what is sent (`webhook_forms`), or how.
"""

from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

MAX_CHARACTERS: Final = 2048
HIDDEN: Final = "…"


class Form(StrEnum):
    """What the other side expects."""

    AUTO = "auto"
    """By the address."""
    JSON = "json"
    """Our own words; for programs."""
    NTFY = "ntfy"
    SLACK = "slack"
    DISCORD = "discord"


class WebhookUrl:
    """An address whose text shows its host alone; no dataclass, whose fields `repr` would show."""

    __slots__ = ("__url", "host", "path", "scheme")

    def __init__(self, url: str) -> None:
        """Take an address; raises ValueError, which doesn't name it, where it can't be one."""
        try:
            parts = urlsplit(url)
            self.scheme, self.host, self.path = parts.scheme, parts.hostname or "", parts.path
            _ = parts.port
        except ValueError:
            raise ValueError("expected an address with a host and a port that exist") from None
        is_plain = url.isascii() and url.isprintable() and " " not in url
        if self.scheme not in {"http", "https"} or not self.host:
            raise ValueError("expected an address that begins with https:// or http://")
        if not is_plain or len(url) > MAX_CHARACTERS:
            raise ValueError(f"expected an address of at most {MAX_CHARACTERS} plain characters")
        self.__url = url

    def reveal(self) -> str:
        """Return the whole of it, for the one who sends."""
        return self.__url

    def form(self, wanted: Form = Form.AUTO) -> Form:
        """Return the form to use: the one that is wanted, or what this host speaks."""
        if wanted is not Form.AUTO:
            return wanted
        if self.host == "ntfy.sh" or self.host.startswith("ntfy."):
            return Form.NTFY
        if self.host in {"discord.com", "discordapp.com"} and self.path.startswith("/api/webhooks"):
            return Form.DISCORD
        return Form.SLACK if self.host == "hooks.slack.com" else Form.JSON

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}/{HIDDEN}"

    def __repr__(self) -> str:
        return f"WebhookUrl({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WebhookUrl) and other.reveal() == self.reveal()

    def __hash__(self) -> int:
        return hash(self.__url)
