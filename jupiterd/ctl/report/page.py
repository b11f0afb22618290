"""The whole page: one file that a browser shows without a network.

Owns its style sheet, for light and dark, with system fonts. Pure: turns the daemon's document and
samples into HTML.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.ctl.report import sections
from jupiterd.ctl.report.html import Html, element
from jupiterd.ctl.report.samples import Chosen
from jupiterd.ctl.report.talking import talking

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The Content-Security-Policy: the browser runs no scripts and loads nothing."""


def report_page(report: Mapping[str, Any], chosen: Chosen | None) -> str:
    """Return the HTML of the page.

    Args:
        report: the daemon's document of `cycle report`.
        chosen: the samples to show; None: there are none yet.
    """
    cycle, rounds = report["cycle"], report["rounds"]
    title = f"{cycle['domain']}: a report"
    body = element(
        "body",
        element("h1", title),
        *sections.facts(report),
        *talking(cycle, rounds),
        sections.overview(report),
        sections.loss(report),
        sections.phases(cycle),
        sections.verdicts(rounds),
        sections.answers(rounds),
        sections.data(rounds),
        sections.samples(chosen),
        sections.completions(rounds),
        sections.events(cycle),
    )
    head = Html(
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{element('title', title)}<style>{_STYLE}</style>"
    )
    page = element("html", element("head", head), body, lang="en")
    return f"<!doctype html>\n{page}\n"


_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --soft: #5b6470;
  --line: #d5dae0; --panel: #f5f7f9; --a: #1f6feb; --b: #c2410c; --c: #0f7b3f; --d: #7c3aed;
  --good: #0f7b3f; --bad: #b42318; --warn: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #14171a; --soft: #9aa4af;
  --line: #343b43; --panel: #1d2227; --a: #6cb0ff; --b: #ffa36b; --c: #5fd08c; --d: #c4a5ff;
  --good: #5fd08c; --bad: #ff8a80; --warn: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 64rem; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; } p { margin: .4rem 0; }
.soft, .nothing, figcaption { color: var(--soft); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
pre { background: var(--panel); padding: .6rem .8rem; margin: .3rem 0; overflow-x: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; font: .82rem/1.45 ui-monospace, monospace; }
pre mark { background: none; color: var(--a); }
details { margin: .4rem 0; } summary { cursor: pointer; }
.answers table { table-layout: fixed; width: 100%; min-width: 44rem; } .answers pre { margin: 0; }
.answers tr > * { padding-right: .7rem; white-space: normal; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: .8rem; }
.PROMOTE { color: var(--good); } .REJECT { color: var(--bad); } .HOLD, .ABSTAIN {
  color: var(--warn); } .PROMOTE, .REJECT, .HOLD, .ABSTAIN { font-weight: 600; }
figure { margin: .6rem 0; } svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
svg .axis { stroke: var(--line); } svg .zero { stroke: var(--soft); stroke-dasharray: 4 3; }
svg .s0 { stroke: var(--a); } svg .s1 { stroke: var(--b); } svg .s2 { stroke: var(--c); }
svg .s3 { stroke: var(--d); } svg .line { fill: none; stroke-width: 2; }
svg .dot { stroke-width: 5; stroke-linecap: round; }
svg .f0 { fill: var(--a); } svg .f1 { fill: var(--b); } svg .f2 { fill: var(--c); }
svg .f3 { fill: var(--d); }
"""
