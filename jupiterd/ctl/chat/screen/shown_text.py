"""What a model wrote, as a terminal may show it.

Pure. Owns which characters stay. A model can have learnt sequences that clear a screen, set a
clipboard or turn text round, so none of them gets through, on whichever way the text goes out.
Doesn't know models or terminals.
"""

import re

from jupiterd.formats import printable

_KEPT = re.compile("([\n\t\u200c\u200d])")
"""Lines, tabs, and the joiners that Persian, Hindi and emoji are written with."""


def shown_text(text: str) -> str:
    """Return the text without anything that steers a terminal; each piece of a stream by itself."""
    text = text.replace("\r\n", "\n")
    return "".join(
        part if number % 2 else printable(part) for number, part in enumerate(_KEPT.split(text))
    )
