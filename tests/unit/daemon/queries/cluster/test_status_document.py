"""What status says of a member that has gone, and of one who waits to be one."""

import asyncio
from dataclasses import replace
from pathlib import Path

from jupiterd.cluster.ledger.lww_registers import canonical_bytes
from jupiterd.cluster.values.gpu_load import GpuLoad
from jupiterd.cluster.values.hardware import Gpu
from jupiterd.cluster.values.machine_load import LOAD_KEYS
from tests.support.daemon.shown import status_of
from tests.support.daemon.two_nodes import TIMEOUT_S, lead, serving, unite


async def test_a_node_that_went_keeps_its_role_and_it_is_said_to_be_past(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        await lead(one)
        gone = two.identity.node_id
        await one.commands.execute_here("node.role", {"node": "two", "role": "generator"})
        one.heartbeats.roster_changed()
        beat = two.heartbeats.message(one.identity.node_id)
        beat.about.CopyFrom(two.observers.description.describe().about)
        one.heartbeats.heard(gone, beat)
        async with asyncio.timeout(TIMEOUT_S):
            while gone not in one.replica.state.roles:
                await one.replica.changed_since(one.replica.version)
        farewell = two.heartbeats.message(one.identity.node_id)
        farewell.goodbye = True
        one.heartbeats.heard(gone, farewell)
        (row,) = [node for node in status_of(one)["nodes"] if node["id"] == gone]
        assert (row["state"], row["role"]) == ("gone", "generator")
        assert row["reason"] == "the role that it had before it went"


async def test_who_waits_to_be_let_in_is_told_of_under_the_keys_of_a_member(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        one.heartbeats.roster_changed()
        beat = two.heartbeats.message(one.identity.node_id)
        beat.leader = two.identity.node_id
        beat.telemetry = canonical_bytes({"waiting": [["e" * 32, "laptop", [1, 2, 3, 4]]]})
        one.heartbeats.heard(two.identity.node_id, beat)
        *members, newcomer = status_of(one)["nodes"]
        assert newcomer["state"] == "pending"
        assert set(newcomer) == set(members[0]) | {"words"}


async def test_how_busy_machines_are_is_told_by_heartbeats(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        other = two.identity.node_id
        gpus = (Gpu("RTX 4090", "GPU-1", 24 << 30, "cuda"), Gpu("RTX 3060", "GPU-2", 1, "cuda"))
        two.local_view.hardware = replace(two.hardware, gpus=gpus)
        beat = two.heartbeats.message(one.identity.node_id)
        beat.about.CopyFrom(two.observers.description.describe().about)
        busy = GpuLoad(89.0, 13 << 30, 71.0, 312.5)
        load = {"cpu_percent": 7.0, "ram_used_bytes": 5}
        beat.telemetry = canonical_bytes({"load": load, "gpus": [busy.to_row()]})
        one.heartbeats.heard(other, beat)
        rows = {node["id"]: node for node in status_of(one)["nodes"]}
        assert rows[other]["load"] == dict.fromkeys(LOAD_KEYS) | load
        assert rows[other]["gpu_loads"] == [busy.to_plain(), GpuLoad().to_plain()]
        own = rows[one.identity.node_id]["load"]
        assert own["ram_bytes"] > own["ram_used_bytes"] > 0
