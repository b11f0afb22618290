"""Which machine an entry of a cluster file means, and the engine that the file asks for."""

import pytest

from jupiterd.cluster.planning.cluster_file_policy import (
    ClusterFile,
    KnownMachine,
    MachineEntry,
    entries_by_node,
)
from jupiterd.ids import NodeId

ALPHA, BETA = NodeId("a" * 32), NodeId("b" * 32)
AT_ONE, AT_TWO = "10.0.0.1:47470", "10.0.0.2:47470"


def machine(node: NodeId, name: str, *addresses: str) -> KnownMachine:
    return KnownMachine(node, name, frozenset(addresses))


TWO = (machine(ALPHA, "alpha", AT_ONE), machine(BETA, "beta", AT_TWO))


def meant(
    entry: MachineEntry, machines: tuple[KnownMachine, ...] = TWO, **meanings: frozenset[str]
) -> list[NodeId]:
    return list(entries_by_node(ClusterFile(entries=(entry,)), machines, meanings))


def test_a_machine_is_meant_by_its_name_or_its_address() -> None:
    assert meant(MachineEntry(name="beta")) == [BETA]
    assert meant(MachineEntry(address=AT_ONE)) == [ALPHA]
    assert meant(MachineEntry(name="gamma")) == meant(MachineEntry(address="10.0.0.3:47470")) == []


def test_a_host_means_what_its_name_was_found_to_mean() -> None:
    entry = MachineEntry(address="studio")
    assert meant(entry) == []
    assert meant(entry, studio=frozenset({AT_TWO})) == [BETA]


def test_the_name_decides_where_the_address_has_gone_to_another() -> None:
    assert meant(MachineEntry(name="alpha", address=AT_TWO)) == [ALPHA]


def test_a_name_that_nobody_bears_leaves_it_to_the_address() -> None:
    assert meant(MachineEntry(name="gamma", address=AT_TWO)) == [BETA]


def test_of_two_with_one_name_the_address_tells_and_without_it_nobody_is_meant() -> None:
    twins = (machine(ALPHA, "pi", AT_ONE), machine(BETA, "pi", AT_TWO))
    assert meant(MachineEntry(name="pi", address=AT_TWO), twins) == [BETA]
    assert meant(MachineEntry(name="pi"), twins) == []
    other = machine(NodeId("c" * 32), "other", "10.0.0.3:47470")
    assert meant(MachineEntry(name="pi", address="10.0.0.3:47470"), (*twins, other)) == []


def test_the_first_of_two_entries_about_one_machine_counts() -> None:
    first, second = (
        MachineEntry(name="alpha", role="trainer"),
        MachineEntry(address=AT_ONE, role="hybrid"),
    )
    assert entries_by_node(ClusterFile(entries=(first, second)), TWO, {}) == {ALPHA: first}


@pytest.mark.parametrize("backend", ["auto", "torch", "mlx"])
def test_the_engine_is_the_one_that_is_written(backend: str) -> None:
    assert ClusterFile(backend=backend).engine() == backend


@pytest.mark.parametrize("backend", ["islands", "mpi"])
def test_islands_train_on_what_each_has(backend: str) -> None:
    written = ClusterFile("c.yaml", backend, sync_every=50)
    assert (written.engine(), written.settings()) == (
        "auto",
        {"islands": "preferred", "sync_every": 50},
    )
    assert list(written.notes()) == []
    assert ClusterFile().settings() == {}


def test_what_has_no_effect_is_said_once_with_its_line() -> None:
    users = tuple(MachineEntry(name=n, ssh_user="me", lines={"ssh_user": 5}) for n in ("a", "b"))
    written = ClusterFile("c.yaml", entries=users)
    assert list(written.notes()) == [
        "c.yaml:5: ssh_user isn't needed: the daemons reach each other without SSH",
    ]
    assert list(ClusterFile().notes()) == []
