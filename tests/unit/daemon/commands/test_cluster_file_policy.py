"""What a cluster file means where its daemon runs: roles, engines, and what contradicts it."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import RoleAssigned
from jupiterd.cluster.planning.cluster_file_policy import ClusterFile, MachineEntry
from jupiterd.cluster.planning.roles import ALONE, WRITTEN
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.daemon.app.command_wiring import file_policy_of
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.commands import cluster_file_policy
from jupiterd.errors import JupiterError
from jupiterd.locations import config_folder
from jupiterd.net.scopes import without_scope_in
from jupiterd.ports import Address
from jupiterd.protocol.commands.cycle_commands import StartCycle
from jupiterd.protocol.commands.train_commands import StartTraining
from tests.support.daemon.shown import status_of
from tests.support.daemon.two_nodes import address_of, found, lead, serving, unite, until

DOMAIN_TEXT = (config_folder() / "domains" / "python.yaml").read_text()


def write(node: Node, *entries: MachineEntry, **told: Any) -> None:
    """Let a node have a cluster file."""
    written = ClusterFile("c.yaml", entries=entries, **told)
    node.settings = replace(node.settings, cluster=written)
    vars(node.file_policy).update(vars(file_policy_of(node)))


@asynccontextmanager
async def one_and_two(folder: Path) -> AsyncGenerator[tuple[Node, Node]]:
    """Two linked members; the first has heard what the second is."""
    async with serving(folder, "one") as one, serving(folder, "two") as two:
        await unite(one, two)
        one.peers.require(two.identity.node_id).hardware = two.hardware
        yield one, two


async def test_a_node_is_told_from_another_on_its_machine_by_name_or_by_port(
    tmp_path: Path,
) -> None:
    async with one_and_two(tmp_path) as (one, two):
        own, other = one.identity.node_id, two.identity.node_id
        write(
            one, MachineEntry(name="one", role="trainer"), MachineEntry(name="two", role="hybrid")
        )
        assert one.file_policy.roles() == {own: "trainer", other: "hybrid"}
        here, there = str(address_of(one)), str(address_of(two))
        write(
            one,
            MachineEntry(address=here, role="trainer"),
            MachineEntry(address=there, role="hybrid"),
        )
        assert one.file_policy.roles() == {own: "trainer", other: "hybrid"}
        write(one, MachineEntry(address=f"localhost:{one.local_view.port}", role="trainer"))
        assert one.file_policy.roles() == {own: "trainer"}


async def test_a_host_name_means_where_it_led_to(tmp_path: Path) -> None:
    async with one_and_two(tmp_path) as (one, two):
        write(one, MachineEntry(address="attic:1", role="hybrid"))
        one.static_discovery.meanings[Address("attic", 1)] = [address_of(two)]
        assert one.file_policy.roles() == {two.identity.node_id: "hybrid"}


async def test_a_leader_gives_the_roles_of_its_file_until_somebody_commands_another(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        own = one.identity.node_id
        one.hardware = one.local_view.hardware = replace(one.hardware, engines=("torch",))
        write(one, MachineEntry(name="one", role="generator"))
        await found(one)
        await lead(one)

        def has(role: str) -> bool:
            return one.replica.state.roles[own].role == role

        assert has("generator")
        assert one.replica.state.roles[own].reason == WRITTEN
        await one.commands.execute("node.role", {"node": "one", "role": "trainer"})
        await until(lambda: has("trainer"))
        await one.commands.execute("node.role", {"node": "one", "role": "auto"})
        await until(lambda: has("hybrid"))
        assert one.replica.state.roles[own].reason == ALONE[1], "auto is a command too"


async def test_what_is_not_so_is_seen_in_status_for_the_node_and_for_the_whole(
    tmp_path: Path,
) -> None:
    async with one_and_two(tmp_path) as (one, two):
        lines = {"memory_gb": 3}
        write(one, MachineEntry(name="two", memory_gb=900_000, ssh_user="me", lines=lines))
        line = f"two has memory_gb {two.hardware.ram_bytes / (1 << 30):.1f}, and c.yaml:3 says"
        document = status_of(one)
        rows = {node["name"]: node["contradictions"] for node in document["nodes"]}
        assert rows["one"] == []
        (told,) = rows["two"]
        assert told.startswith(line)
        shown = {w["code"]: w for w in document["health"]}
        assert shown["contradiction"]["title"] == told
        assert shown["contradiction"]["severity"] == "warning"
        assert shown["no-effect"]["severity"] == "info"
        assert not {"contradiction", "no-effect"} & {w["code"] for w in status_of(two)["health"]}


async def test_the_link_in_use_is_compared_by_the_end_that_the_entry_is_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with one_and_two(tmp_path) as (one, two):
        peer = one.peers.require(two.identity.node_id)
        peer.address_kinds = {without_scope_in(str(peer.address)): InterfaceKind.WIFI}
        entries = [
            MachineEntry(name=name, connection_type="thunderbolt") for name in ("one", "two")
        ]
        write(one, *entries)
        assert one.file_policy.all_contradictions() == (), "loopback is no link"
        peer.source = "10.0.0.9"
        monkeypatch.setattr(cluster_file_policy, "interface_of", lambda address: f"to {address}")
        monkeypatch.setattr(
            cluster_file_policy, "kind_of", {"to 10.0.0.9": InterfaceKind.THUNDERBOLT}.__getitem__
        )
        write(one, *entries)
        assert one.file_policy.all_contradictions() == (
            "two has connection_type Wi-Fi, and c.yaml:1 says thunderbolt",
        )


async def test_the_log_says_each_contradiction_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_file_policy, "LOOK_S", 0.0)
    caplog.set_level(logging.INFO, "jupiterd")
    async with one_and_two(tmp_path) as (one, _), asyncio.TaskGroup() as group:
        looks: list[None] = []
        write(
            one,
            MachineEntry(name="one", device_type="mac"),
            MachineEntry(name="two", memory_gb=900_000),
        )
        look = one.file_policy.all_contradictions
        monkeypatch.setattr(
            one.file_policy, "all_contradictions", lambda: (looks.append(None), look())[1]
        )
        running = group.create_task(one.file_policy.run())
        await until(lambda: len(looks) > 5)
        running.cancel()
    events = [record.getMessage() for record in caplog.records]
    assert events.count("cluster_file") == 1
    assert events.count("contradiction") == 2


async def test_without_a_file_nothing_is_said_or_done(tmp_path: Path) -> None:
    async with one_and_two(tmp_path) as (one, _):
        await one.file_policy.run()
        assert one.file_policy.roles() == {}
        assert one.file_policy.all_contradictions() == one.file_policy.notes() == ()


TRAINING = StartTraining(model="1m")
CYCLE = StartCycle(domain_name="python", domain_yaml="")


async def test_a_run_is_on_the_engine_of_the_file_unless_one_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        write(one, backend="mlx")
        assert one.file_policy.added_to_training(TRAINING) == replace(TRAINING, engine="mlx")
        assert one.file_policy.added_to_cycle(CYCLE) == replace(CYCLE, engine="mlx")
        for command in (replace(TRAINING, engine="auto"), replace(TRAINING, engine="torch")):
            assert one.file_policy.added_to_training(command) == command
        named = replace(CYCLE, engine="auto")
        assert one.file_policy.added_to_cycle(named) == named
        write(one)
        assert one.file_policy.added_to_training(TRAINING) == TRAINING
        assert one.file_policy.added_to_cycle(CYCLE) == CYCLE


async def test_what_is_started_on_a_machine_is_encrypted_where_its_owner_wants_that(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one", gang_encryption=True) as one:
        added = {"gang_encryption": "on"}
        assert one.file_policy.added_to_training(TRAINING) == replace(TRAINING, settings=added)
        assert one.file_policy.added_to_cycle(CYCLE) == replace(CYCLE, settings=added)
        said = {"gang_encryption": "off", "islands": "off"}
        asked = replace(TRAINING, settings=said)
        assert one.file_policy.added_to_training(asked) == asked
    async with serving(tmp_path, "two") as two:
        assert two.file_policy.added_to_training(TRAINING) == TRAINING
        assert two.file_policy.added_to_cycle(CYCLE) == CYCLE


@pytest.mark.parametrize(
    ("asked", "becomes"),
    [
        ({"lora": "rank=8"}, {"lora": "rank=8,quantize=4bit"}),
        ({"lora": "rank=8,quantize=none"}, {"lora": "rank=8,quantize=none"}),
        ({"lora": "rank=8", "quantize": "8bit"}, {"lora": "rank=8", "quantize": "8bit"}),
        ({"lora": "off"}, {"lora": "off"}),
        ({"seq_len": 64}, {"seq_len": 64}),
    ],
)
async def test_adapters_that_are_asked_for_on_a_machine_have_bases_as_its_owner_wants(
    tmp_path: Path, asked: dict[str, Any], becomes: dict[str, Any]
) -> None:
    async with serving(tmp_path, "one", quantize="4bit") as one:
        run = one.file_policy.added_to_training(replace(TRAINING, settings=asked))
        cycle = one.file_policy.added_to_cycle(replace(CYCLE, training=asked))
        assert run.settings == cycle.training == becomes
    async with serving(tmp_path, "two") as two:
        assert two.file_policy.added_to_cycle(replace(CYCLE, training=asked)).training == asked


async def test_what_begins_with_given_weights_here_trains_the_adapter_that_is_usual_here(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one", lora="rank=8") as one:
        tuning = replace(TRAINING, weights_folder="/models/mine")
        added = one.file_policy.added_to_training(tuning)
        assert (added.settings, added.usual_adapter_of) == ({"lora": "rank=8"}, "one")
        for said in ("", "rank=2"):
            asked = replace(tuning, settings={"lora": said})
            assert one.file_policy.added_to_training(asked) == asked
        assert one.file_policy.added_to_training(TRAINING) == TRAINING, "its weights are drawn"
        cycle = replace(CYCLE, domain_yaml=DOMAIN_TEXT, init={"model": "mine", "config": "{}"})
        begun = one.file_policy.added_to_cycle(cycle)
        assert (begun.training, begun.usual_adapter_of) == ({"lora": "rank=8"}, "one")
        for decided in (
            replace(cycle, training={"lora": "off"}),
            replace(cycle, domain_yaml=f"{DOMAIN_TEXT}training: {{lora: rank=2}}\n"),
            replace(cycle, init=None),
        ):
            assert one.file_policy.added_to_cycle(decided) == decided
    async with serving(tmp_path, "two", lora="rank=8", quantize="4bit") as two:
        both = {"lora": "rank=8,quantize=4bit"}
        assert two.file_policy.added_to_training(tuning).settings == both
        assert two.file_policy.added_to_cycle(cycle).training == both
    async with serving(tmp_path, "three") as three:
        assert three.file_policy.added_to_training(tuning) == tuning


async def test_the_command_that_a_person_gives_takes_the_engine_of_the_file(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        one.hardware = one.local_view.hardware = replace(one.hardware, engines=("torch",))
        own = RoleAssigned(one.identity.node_id, "hybrid", "it is alone", 1)
        await found(one, facts=(own,))
        await lead(one)
        domain = (Path(__file__).parents[4] / "config" / "domains" / "python.yaml").read_text()
        asked = {"domain_yaml": domain, "domain_name": "python"}
        write(one, backend="mlx")
        with pytest.raises(JupiterError, match="none of 1 trainers has mlx"):
            await one.commands.execute("cycle.plan", asked)
        planned = await one.commands.execute("cycle.plan", {**asked, "engine": "torch"})
        assert planned["domain"] == "python"


@pytest.mark.parametrize("backend", ["islands", "mpi"])
async def test_a_file_may_want_islands_and_say_how_often_they_exchange(
    tmp_path: Path, backend: str
) -> None:
    async with serving(tmp_path, "one") as one:
        write(one, backend=backend, sync_every=50)
        added = one.file_policy.added_to_training(replace(TRAINING, settings={"seq_len": 64}))
        assert added.settings == {"islands": "preferred", "sync_every": 50, "seq_len": 64}
        said = replace(TRAINING, settings={"islands": "off", "sync_every": 7})
        assert one.file_policy.added_to_training(said) == said
        for_a_cycle = one.file_policy.added_to_cycle(replace(CYCLE, settings={"sync_every": 9}))
        assert for_a_cycle.settings == {"islands": "preferred", "sync_every": 9}
        write(one)
        assert one.file_policy.added_to_training(TRAINING) == TRAINING
