"""`jupiterctl status`: shows the cluster, its nodes, its work and its health on one screen."""

from collections.abc import Mapping
from typing import Any

import click

from jupiterd.cluster.text.fetch_words import fetch_words
from jupiterd.cluster.text.health_words import OF_THE_TEXT, OF_THIS_NODE, WELL_ANYWAY, code_and_age
from jupiterd.cluster.text.serving_words import serving_words
from jupiterd.cluster.values.node_names import find_node
from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.admission_lines import door_line
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.output.node_rows import node_table
from jupiterd.ctl.output.pause_lines import pause_line
from jupiterd.ctl.output.phase_lines import heavy_drop_lines
from jupiterd.ctl.output.progress_lines import cycle_summary
from jupiterd.errors import UnhealthyError, UsageError
from jupiterd.formats import counted, plain, table
from jupiterd.ids import NodeId, short

SELF = "self"
"""Means the machine whose daemon answers."""


@click.command(cls=GlobalOptionsCommand)
@click.option("--check", is_flag=True, help="Exit with 8 if anything is wrong.")
@click.option(
    "--node", metavar="self|NAME", help="With --check: count what is wrong with that machine alone."
)
@click.option("--settings", is_flag=True, help="This daemon's settings instead, each's source too.")
@click.pass_obj
def command(invocation: Invocation, *, check: bool, node: str | None, settings: bool) -> None:
    """Show the cluster, its nodes, its cycle and its health.

    \b
    Examples:
      jupiterctl status
      jupiterctl status --check && echo all is well
      jupiterctl status --check --node self    # for health checks of one machine
      jupiterctl status --settings
      jupiterctl status -o json | jq .cluster.leader
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask

    if settings and check:
        raise UsageError("--check looks at the cluster, --settings at one daemon", "name one")
    if node is not None and not check:
        raise UsageError("--node goes with --check", "jupiterctl node show shows one machine")
    document = ask(invocation.state_dir, "settings" if settings else "status")
    Console.of(invocation).show(
        document, lambda: (settings_table if settings else status_lines)(document)
    )
    wrong = ailments(document) if node is None else ailments_of(document, node)
    if check and wrong:
        raise UnhealthyError(
            f"{counted(len(wrong), 'thing')} wrong: {plain(wrong[0]['title'])}",
            plain(wrong[0].get("hint")),
        )


def settings_table(document: Mapping[str, Any]) -> list[str]:
    """Return the table of settings; settings with default values come last."""
    rows = [(row["name"], _value(row["value"]), row["source"]) for row in document["settings"]]
    return table(("SETTING", "VALUE", "FROM"), sorted(rows, key=lambda row: row[2] == "default"))


def _value(value: object) -> str:
    match value:
        case None | "" | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(str(part) for part in value)
        case _:
            return str(value)


def ailments(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the health entries that count as wrong: not `info`, and no code of WELL_ANYWAY."""
    found = [item for item in status.get("health", []) if item.get("code") not in WELL_ANYWAY]
    return [item for item in found if item.get("severity") != "info"]


def ailments_of(status: Mapping[str, Any], node: str) -> list[Mapping[str, Any]]:
    """Return the `ailments` of one machine; node: `self`, a name, an id or the start of one.

    Raises:
        NotFoundError: there is no such machine, or there are several.
    """
    own = (status.get("node") or {}).get("id")
    names = {NodeId(row["id"]): str(row.get("name")) for row in status.get("nodes", [])}
    meant = own if node == SELF else find_node(names, node)
    return [item for item in ailments(status) if (item.get("node") or _unnamed(item, own)) == meant]


def _unnamed(item: Mapping[str, Any], own: object) -> object:
    """Return the node of an entry that names none: our own for codes about it, else None."""
    return own if item.get("code") in OF_THIS_NODE else None


def status_lines(status: Mapping[str, Any]) -> list[str]:
    """Return the lines about a status document."""
    node, cycle, train = status.get("node") or {}, status.get("cycle"), status.get("train")
    terms = (status.get("cluster") or {}).get("door")
    door = [f"door     {door_line(terms)}"] if terms else []
    return [
        f"cluster  {cluster_line(status)}",
        f"node     {plain(node.get('name'))} ({short(node.get('id', ''))})",
        *([f"words    {plain(node['words'])}"] if node.get("words") else []),
        f"cycle    {cycle_summary(cycle) if cycle else 'none'}",
        *([f"         {paused}"] if cycle and (paused := pause_line(cycle)) else []),
        *(f"         {line}" for line in _dropped(status)),
        *([f"train    {cycle_summary(train)}"] if train else []),
        *(f"fetch    {fetch_words(row)}" for row in status.get("fetches") or ()),
        *_serving(status),
        *door,
        *health_lines(status),
        "",
        *node_table(status),
    ]


def _serving(status: Mapping[str, Any]) -> list[str]:
    """Return a line for each machine that serves models."""
    rows = [(node, serving_words(node.get("serving") or ())) for node in status.get("nodes", ())]
    return [f"models   {plain(node.get('name'))} serves {words}" for node, words in rows if words]


def _dropped(status: Mapping[str, Any]) -> list[str]:
    """Return lines about phases that dropped too much, unless the health entries have them."""
    is_in_health = any(item.get("code") in OF_THE_TEXT for item in status.get("health") or ())
    return [] if is_in_health else heavy_drop_lines(status.get("cycle") or {})


def cluster_line(status: Mapping[str, Any]) -> str:
    """Return a line about the cluster: its name, leader, term and living nodes."""
    cluster = status.get("cluster") or {}
    if not cluster.get("id"):
        return "none yet"
    leader = cluster.get("leader")
    names = {item.get("id"): item.get("name") for item in status.get("nodes", [])}
    led = (
        f"led by {plain(names.get(leader) or short(leader))}"
        if leader
        else "no leader yet, an election is under way"
    )
    name = f"{plain(cluster.get('name'))} ({short(cluster['id'])})"
    alive = f"{cluster.get('nodes_alive')} of {cluster.get('nodes_total')} nodes alive"
    return f"{name}, {led}, term {cluster.get('term')}, {alive}"


def health_lines(status: Mapping[str, Any]) -> list[str]:
    """Return lines about the health entries with their hints, and the dismissed alarms."""
    lines: list[str] = []
    for item in status.get("health", []):
        title = f"{plain(item.get('title'))} ({code_and_age(item)})"
        lines.append(f"health   {plain(item.get('severity'))}: {title}")
        lines += [f"         hint: {plain(item['hint'])}"] if item.get("hint") else []
    lines = lines or ["health   good"]
    seen = [plain(item.get("code")) for item in status.get("dismissed") or ()]
    return [*lines, f"         dismissed: {', '.join(seen)}"] if seen else lines
