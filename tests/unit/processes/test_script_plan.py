import json

import pytest

from jupiterd.errors import UsageError
from jupiterd.processes.script_plan import (
    MLX,
    PLACEHOLDER,
    TORCH,
    LaunchAttempt,
    MachinePart,
    orders,
)

ARGV = ("python", "train.py")
FIRST = MachinePart("a", "attic", "10.0.0.1", "eth0", 2, 8, (4000, 4001, 4002))
SECOND = MachinePart("b", "cellar", "10.0.0.2", "en5", 1, 4, (5000, 5001))


def planned(*places: MachinePart, engine: str = TORCH, given: dict[str, str] | None = None):
    return orders(places, ARGV, "/home/me", engine, LaunchAttempt("run-1"), given or {})


def test_ranks_are_numbered_machine_by_machine_and_know_where_they_are():
    first, second = planned(FIRST, SECOND)
    assert [rank.rank for rank in first.ranks + second.ranks] == [0, 1, 2]
    told = second.ranks[0].variables
    assert {name: told[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")} == {
        "RANK": "2", "LOCAL_RANK": "0", "WORLD_SIZE": "3",
    }  # fmt: skip
    assert (told["LOCAL_WORLD_SIZE"], told["NODE_RANK"], told["GROUP_RANK"]) == ("1", "1", "1")
    assert (told["MASTER_ADDR"], told["MASTER_PORT"]) == ("10.0.0.1", "4000")
    assert first.ranks[1].variables["LOCAL_RANK"] == "1"


def test_each_machine_names_its_own_interface():
    first, second = planned(FIRST, SECOND)
    assert first.ranks[0].variables["GLOO_SOCKET_IFNAME"] == "eth0"
    assert second.ranks[0].variables["GLOO_SOCKET_IFNAME"] == "en5"
    assert second.ranks[0].variables["NCCL_SOCKET_IFNAME"] == "=en5"


def test_all_ranks_are_clients_of_one_store_beside_rank_0():
    first, second = planned(FIRST, SECOND)
    assert (first.store_host, first.store_port) == ("10.0.0.1", 4000)
    assert not second.store_port
    told = {r.variables["TORCHELASTIC_USE_AGENT_STORE"] for r in first.ranks + second.ranks}
    assert told == {"True"}


def test_one_rank_alone_needs_no_store_and_no_ring():
    alone = MachinePart("", "here", "127.0.0.1", "lo", 1, 2, (4000, 4001))
    for engine in (TORCH, MLX):
        (order,) = planned(alone, engine=engine)
        (rank,) = order.ranks
        assert not order.store_port
        assert not rank.hostfile
        assert {"TORCHELASTIC_USE_AGENT_STORE", "MLX_RANK"}.isdisjoint(rank.variables)


def test_a_rank_of_a_ring_reads_itself_and_its_right_neighbour_alone():
    first, second = planned(FIRST, SECOND, engine=MLX)
    hostfiles = [json.loads(rank.hostfile) for rank in first.ranks + second.ranks]
    assert hostfiles == [
        [["10.0.0.1:4001"], ["10.0.0.1:4002"], [PLACEHOLDER]],
        [[PLACEHOLDER], ["10.0.0.1:4002"], ["10.0.0.2:5001"]],
        [["10.0.0.1:4001"], [PLACEHOLDER], ["10.0.0.2:5001"]],
    ]
    assert [rank.variables["MLX_RANK"] for rank in first.ranks] == ["0", "1"]


def test_the_processes_of_a_machine_share_its_cores():
    first, second = planned(FIRST, SECOND)
    assert first.ranks[0].defaults["OMP_NUM_THREADS"] == "4"
    assert second.ranks[0].defaults["OMP_NUM_THREADS"] == "4"


def test_the_user_may_set_anything_but_who_a_rank_is():
    (order,) = planned(FIRST, given={"OMP_NUM_THREADS": "3", "NCCL_DEBUG": "INFO"})
    assert order.ranks[0].variables["OMP_NUM_THREADS"] == "3"
    assert order.ranks[0].variables["NCCL_DEBUG"] == "INFO"
    with pytest.raises(UsageError, match="RANK is set by"):
        planned(FIRST, given={"RANK": "7"})
