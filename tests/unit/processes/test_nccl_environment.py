"""What NCCL is told."""

from pathlib import Path

import pytest

from jupiterd.processes.environment import worker_environment
from jupiterd.processes.nccl_environment import NAMES, finds_infiniband, nccl_environment
from jupiterd.processes.warm_pool import LATE

RANK = {"world_size": 2, "interface": "eth0", "first_host": "10.0.0.2"}


def test_one_interface_is_named_exactly_and_one_family_for_all():
    found = nccl_environment("eth0", "10.0.0.2", 1_000, has_infiniband=False)
    assert found["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert found["NCCL_SOCKET_FAMILY"] == "AF_INET"
    six = nccl_environment("eth0", "fd00::2", 1_000, has_infiniband=False)
    assert six["NCCL_SOCKET_FAMILY"] == "AF_INET6"


@pytest.mark.parametrize(("speed", "sockets"), [(0, None), (2_500, None), (10_000, "2")])
def test_only_a_fast_wire_gets_more_sockets(speed: int, sockets: str | None):
    found = nccl_environment("eth0", "10.0.0.2", speed, has_infiniband=False)
    assert found.get("NCCL_NSOCKS_PERTHREAD") == found.get("NCCL_SOCKET_NTHREADS") == sockets


def test_infiniband_is_looked_for_only_where_it_is(tmp_path: Path):
    assert "NCCL_IB_DISABLE" not in nccl_environment("ib0", "10.0.0.2", has_infiniband=True)
    found = nccl_environment("eth0", "10.0.0.2", has_infiniband=False)
    assert found["NCCL_IB_DISABLE"] == "1"
    assert not finds_infiniband(tmp_path)
    assert not finds_infiniband(tmp_path / "missing")
    (tmp_path / "mlx5_0").mkdir()
    assert finds_infiniband(tmp_path)


def test_a_hang_is_noticed_and_leaves_something_to_look_at():
    found = nccl_environment("eth0", "10.0.0.2", has_infiniband=False)
    assert found["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "1"
    assert found["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"] == "30"
    assert found["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "1"
    assert found["TORCH_NCCL_TRACE_BUFFER_SIZE"] == found["TORCH_FR_BUFFER_SIZE"] == "2000"


def test_only_a_gang_over_nccl_is_told_of_it():
    assert not NAMES & worker_environment("train", RANK | {"backend": "gloo"}, {}).keys()
    assert NAMES & worker_environment("train", RANK | {"backend": "nccl"}, {}).keys()


def test_a_warm_process_serves_gangs_over_either_backend():
    found = nccl_environment("eth0", "10.0.0.2", 10_000, has_infiniband=False)
    assert found.keys() <= NAMES <= LATE
