"""How one talks to the model of a report: the commands, and the page while one of them runs.

Owns the sentence and its link, which the browser follows only when somebody clicks. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from jupiterd.ctl.report.html import Html, element
from jupiterd.ids import short

PAGE: Final = "http://127.0.0.1:47480/"
"""Of `model serve` without options, on the machine where it runs."""


def talking(cycle: Mapping[str, Any], rounds: Sequence[Mapping[str, Any]]) -> Iterator[Html]:
    """Yield the paragraph; nothing where no round has a model."""
    if not rounds:
        return
    name = f"{short(str(cycle['id']))}/{rounds[-1]['round']}"
    address = f"{PAGE}?{urlencode({'model': name})}"
    yield element(
        "p",
        "Talk to its newest model: ",
        element("code", f"jupiterctl model chat {name}"),
        "; or in a browser, while ",
        element("code", f"jupiterctl model serve {name}"),
        " runs on this machine: ",
        element("a", address, href=address, rel="noreferrer"),
    )
