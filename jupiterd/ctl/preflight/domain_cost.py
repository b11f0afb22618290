"""The limits that a domain file sets for a cycle: for each source, and for generated text.

Owns the texts. Doesn't predict the training: the daemon does, which knows the machines.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.ctl.output.layout_lines import layout_lines
from jupiterd.ctl.preflight.planned_writer import PlannedWriter
from jupiterd.ctl.sources.base_model_source import SCRATCH
from jupiterd.ctl.sources.source_reachability import where
from jupiterd.cycle.domain.domain import Domain
from jupiterd.formats import plain, size

_BOUNDS = (
    ("max_pages", "pages"),
    ("max_entries", "entries"),
    ("max_documents", "rows"),
    ("max_files", "files"),
)
"""(key of a source, unit that it limits)."""

Plain = dict[str, Any]


def domain_cost(domain: Domain, writer: PlannedWriter) -> Plain:
    """Return the limits of each source and of the text generated in a round."""
    return {
        "sources": [
            {
                "name": source.name,
                "kind": source.kind,
                "where": where(source),
                "max_bytes": source.max_bytes,
                **{
                    key: getattr(source, key)
                    for key in (*dict(_BOUNDS), "delay_s")
                    if hasattr(source, key)
                },
            }
            for source in domain.data_sources
        ],
        "generator": writer.name,
        "generated_samples": writer.samples,
        "generated_tokens": writer.tokens,
        "holdout_fraction": domain.holdout.fraction,
    }


def cost_lines(planned: Mapping[str, Any]) -> list[str]:
    """Return the lines of the plan."""
    plan = planned["plan"]
    count = int(planned["rounds"])
    rounds = "one round" if count == 1 else f"{count} rounds"
    predicted = list(map(plain, planned.get("sheet", ())))
    most = f"{plan['generated_samples']:,} samples, {plan['generated_tokens']:,} tokens"
    return [
        f"{plain(planned['domain'])}, {rounds}; nothing is started",
        *map(_source_line, plan["sources"]),
        _held_out_line(plan["holdout_fraction"]),
        f"generated, in each round{_from_when(plan['generator'])}: at most {most}",
        *_init_lines(plan.get("init") or {}),
        *(predicted or ["no machine that could train is here, so no training is predicted"]),
        *layout_lines(planned),
    ]


def _from_when(generator: str) -> str:
    """Return who generates, or from when on if there is no generator in round 1."""
    return f" by {plain(generator)}" if generator else " from the first promotion on"


def _held_out_line(fraction: float | None) -> str:
    if fraction is None:
        return "held out: as much as a verdict needs, worked out once the text was collected"
    return f"held out: {fraction:.0%} of the sites, repositories, folders or files"


def _init_lines(init: Mapping[str, Any]) -> list[str]:
    """Return a line about the weights that round 1 starts from; empty if they are random."""
    name = plain(init.get("begins_with", SCRATCH))
    if name == SCRATCH:
        return []
    text = f"round 1 begins with {name}"
    if not init["is_here"]:
        text += ", which cycle start fetches: what is predicted here is for a "
        text += f"model of size {plain(init['size'])}"
    elif missing := int(init.get("to_fetch_bytes") or 0):
        text += f", of which cycle start fetches {size(missing)}"
    return [text]


def _source_line(source: Mapping[str, Any]) -> str:
    bounds = [f"{source[key]:,} {unit}" for key, unit in _BOUNDS if key in source]
    bounds.append(f"{source['max_bytes'] / 2**30:,.2f} GiB")
    line = f"source {source['name']} ({source['kind']}, {plain(source['where'])}): at most "
    line += " or ".join(bounds)
    if delay_s := source.get("delay_s"):
        pages = source.get("max_pages") or source.get("max_entries") or 0
        line += f", {delay_s:g} s apart for each host: up to {_hours(pages * delay_s)}"
    return line


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"
