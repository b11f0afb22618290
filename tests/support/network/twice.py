"""Machines that are joined twice: by Ethernet and a slower network as Wi-Fi is, or by two cables.

Owns making them, and reading in their status which way they use. Doesn't know what is done to them.
"""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from tests.support.daemons.cluster import Document
from tests.support.network import links
from tests.support.network.lab import WIRELESS, interface, lab_of
from tests.support.network.machines import Machines, Views, machines_of

SECOND = 1
"""The switch of the second cable."""

JOIN_S = 15.0
BOTH_KNOWN_S = 15.0


@contextlib.asynccontextmanager
async def joined_twice(folder: Path, count: int = 2) -> AsyncGenerator[Machines]:
    """Run machines that know both ways to each other, and use the better one."""
    with lab_of(count) as lab:
        lab.add_switch(WIRELESS)
        for host in lab.hosts:
            host.plug_in(WIRELESS)
            links.throttle(host, WIRELESS, "20mbit")
        async with machines_of(lab, folder) as machines:
            await machines.one_cluster(JOIN_S)
            await machines.until_all(
                lambda views: None not in views and know_both(views) and all_use(views, 0),
                "both ways are known, and Ethernet is used",
                BOTH_KNOWN_S,
            )
            yield machines


@contextlib.asynccontextmanager
async def wired_twice(folder: Path) -> AsyncGenerator[Machines]:
    """Run two machines with two cables between them, which differ in nothing."""
    with lab_of(2) as lab:
        lab.add_switch(SECOND)
        for host in lab.hosts:
            host.plug_in(SECOND)
        async with machines_of(lab, folder) as machines:
            await machines.one_cluster(JOIN_S)
            await machines.until_all(
                lambda views: None not in views and use_one_of(views, (0, SECOND)),
                "both cables are known, and both ends use one of them",
                BOTH_KNOWN_S,
            )
            yield machines


def use_one_of(views: Views, switches: Sequence[int]) -> bool:
    """Say whether all have measured a way through each of these, and all use the same one."""
    named = {interface(switch) for switch in switches}
    known = all(
        {way["interface"] for way in ways if way["rtt_ms"] is not None} == named
        for view in views
        if view is not None
        for ways in paths(view)
    )
    return known and any(all_use(views, switch) for switch in switches)


def paths(view: Document) -> list[list[dict[str, Any]]]:
    """Return the ways to each other machine, as one sees them."""
    return [node["links"] for node in view["nodes"] if node["id"] != view["node"]["id"]]


def all_use(views: Views, switch: int) -> bool:
    """Say whether all reach each other through this switch."""
    return all(
        ways and ways[0]["active"] and ways[0]["interface"] == interface(switch)
        for view in views
        if view is not None
        for ways in paths(view)
    )


def know_both(views: Views) -> bool:
    """Say whether all have measured a way to each other over both networks."""
    return all(
        {way["kind"] for way in ways if way["rtt_ms"] is not None} == {"Ethernet", "Wi-Fi"}
        for view in views
        if view is not None
        for ways in paths(view)
    )
