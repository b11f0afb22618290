"""What a model wrote, as a terminal may show it.

Pure. Owns which characters stay. A model can have learnt sequences that clear a screen, set a
clipboard or turn text round, so none of them gets through, on whichever way the text goes out.
Doesn't know models or terminals.
"""

import re

from jupiterd.formats import printable

_KEPT = re.compile("([\n\t\u200c\u200d])")
"""Lines, tabs, and the joiners that Persian, Hindi and emoji are written with."""


class ShownText:
    """A text that comes in pieces: a line end of two characters may come in two of them."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, piece: str) -> str:
        """Return what may be shown by now; a carriage return waits for what follows it."""
        text = self._rest + piece
        self._rest = "\r" if text.endswith("\r") else ""
        return shown_text(text.removesuffix("\r"))


def shown_text(text: str) -> str:
    """Return a whole text without anything that steers a terminal."""
    text = text.replace("\r\n", "\n")
    return "".join(
        part if number % 2 else printable(part) for number, part in enumerate(_KEPT.split(text))
    )
