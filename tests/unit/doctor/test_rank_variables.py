"""Which variables for ranks are probably mistyped, and what doctor says of them."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.doctor.examined_machine import ExaminedMachine
from jupiterd.doctor.finding import Status
from jupiterd.doctor.rank_variables import KNOWN, doubts, judge
from jupiterd.processes.rank_variables import is_rank_variable

INTERFACES = ("eth0", "eth1", "ib0", "lo")


@pytest.mark.parametrize(
    ("variables", "doubt"),
    [
        ({"NCCL_IB_HCAA": "mlx5_0"}, "did you mean NCCL_IB_HCA?"),
        ({"NCCL_P2P_DISABEL": "1"}, "did you mean NCCL_P2P_DISABLE?"),
        ({"GLOO_SOCKET_IFNAM": "eth0"}, "did you mean GLOO_SOCKET_IFNAME?"),
        ({"CUDA_LAUNCH_BLOKING": "1"}, "did you mean CUDA_LAUNCH_BLOCKING?"),
        ({"GLOO_SOCKET_IFNAME": "eth9"}, "names eth9; this machine's interfaces: eth0, eth1,"),
        ({"GLOO_SOCKET_IFNAME": "eth0, eth9"}, "GLOO_SOCKET_IFNAME names eth9;"),
        ({"GLOO_SOCKET_IFNAME": "eth"}, "GLOO_SOCKET_IFNAME names eth;"),
        ({"NCCL_SOCKET_IFNAME": "=eth"}, "NCCL_SOCKET_IFNAME names eth;"),
        ({"NCCL_SOCKET_IFNAME": "wlan,en"}, "NCCL_SOCKET_IFNAME names wlan, en;"),
    ],
)
def test_a_name_or_an_interface_that_is_mistyped_is_doubted(
    variables: Mapping[str, str], doubt: str
) -> None:
    (found,) = doubts(variables, INTERFACES)
    assert doubt in found


@pytest.mark.parametrize(
    "variables",
    [
        {"NCCL_IB_HCA": "mlx5_0:1", "NCCL_P2P_DISABLE": "1"},
        {"NCCL_OF_A_LATER_VERSION": "1"},
        {"GLOO_SOCKET_IFNAME": "eth0,ib0"},
        {"NCCL_SOCKET_IFNAME": "eth"},
        {"NCCL_SOCKET_IFNAME": "=ib0"},
        {"NCCL_SOCKET_IFNAME": "^docker,lo"},
        {"NCCL_SOCKET_IFNAME": "wlan,eth"},
    ],
)
def test_what_may_be_meant_is_believed(variables: Mapping[str, str]) -> None:
    assert [*doubts(variables, INTERFACES)] == []


@given(st.sampled_from(sorted(KNOWN)))
def test_every_known_name_may_be_given_and_is_believed(name: str) -> None:
    assert is_rank_variable(name)
    assert not [each for each in doubts({name: "x"}, INTERFACES) if "did you mean" in each]


@pytest.mark.parametrize(
    ("variables", "status", "why"),
    [
        ({}, Status.NOT_HERE, "no variables are given to ranks"),
        ({"NCCL_DEBUG": "INFO"}, Status.OK, "given to ranks: NCCL_DEBUG"),
        ({"GLOO_SOCKET_IFNAME": "eth99"}, Status.WARN, "GLOO_SOCKET_IFNAME names eth99"),
    ],
)
def test_doctor_tells_of_each(variables: Mapping[str, str], status: Status, why: str) -> None:
    machine = ExaminedMachine(Path("/nowhere"), 1, rank_variables=variables)
    (found,) = judge(machine)
    assert found.status is status
    assert why in found.why
