"""The whole page: one file, with nothing from elsewhere, that a browser shows without a network.

Pure: the daemon's document and samples come in, HTML goes out.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.ctl.report import sections
from jupiterd.ctl.report.html import Html, element
from jupiterd.ctl.report.samples import Chosen
from jupiterd.ctl.report.style import STYLE

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""A browser runs and fetches nothing, whatever a text in the page may try."""


def report_page(report: Mapping[str, Any], chosen: Chosen | None) -> str:
    """Return the page.

    Args:
        report: the daemon's document of `cycle report`.
        chosen: samples to look at.
    """
    cycle, rounds = report["cycle"], report["rounds"]
    title = f"{cycle['domain']}: a report"
    body = element(
        "body",
        element("h1", title),
        *sections.facts(report),
        sections.overview(report),
        sections.loss(report),
        sections.phases(cycle),
        sections.verdicts(rounds),
        sections.data(rounds),
        sections.samples(chosen),
        sections.completions(rounds),
        sections.events(cycle),
    )
    head = Html(
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{element('title', title)}<style>{STYLE}</style>"
    )
    page = element("html", element("head", head), body, lang="en")
    return f"<!doctype html>\n{page}\n"
