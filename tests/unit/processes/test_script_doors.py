"""Where a launched script's ranks meet, strangers aren't heard."""

import socket
import sys
from contextlib import closing

import pytest

from jupiterd.processes.script import bind_meeting, free_ports, ring_ports_guarded
from jupiterd.processes.script_messages import order_from_proto, order_to_proto
from jupiterd.processes.script_plan import (
    MLX,
    TORCH,
    LaunchAttempt,
    MachinePart,
    ScriptOrder,
    orders,
    own_address,
)
from jupiterd.processes.scripts.script_supervisor import order_from_json, order_to_json

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux closes a socket")

HERE, MEMBER, STRANGER = "127.0.0.1", "127.0.0.2", "127.0.0.9"


def launched(engine: str, *ports: int) -> list[ScriptOrder]:
    return orders(
        [
            MachinePart(name, name, host, "lo", 1, 1, ports, addresses=(host, "fe80::1%eth0"))
            for name, host in (("one", HERE), ("two", MEMBER))
        ],
        ["python", "train.py"], "/home/ada", engine, LaunchAttempt("run"), {},
    )  # fmt: skip


def reaches(sender: str, port: int) -> bool:
    with socket.socket() as made:
        made.settimeout(0.2)
        made.bind((sender, 0))
        try:
            made.connect((HERE, port))
        except TimeoutError:
            return False
        return True


def test_an_order_names_the_addresses_of_all_machines_wherever_it_goes() -> None:
    for order in launched(TORCH, 1):
        assert order.member_hosts == (HERE, MEMBER, "fe80::1")
        assert order_from_proto(order_to_proto(order)).member_hosts == order.member_hosts
        assert order_from_json(order_to_json(order)) == order


@pytest.mark.net
def test_torchs_store_hears_the_machines_of_the_launch_alone() -> None:
    (order, _) = launched(TORCH, 1)
    with bind_meeting(HERE, 0, order.member_hosts) as listener:
        port = listener.getsockname()[1]
        assert reaches(MEMBER, port)
        assert reaches(HERE, port)
        assert not reaches(STRANGER, port)


@pytest.mark.net
def test_a_stranger_at_a_rings_port_never_reaches_the_script() -> None:
    (_, port) = free_ports(HERE, 2)
    (order, _) = launched(MLX, 1, port)
    assert own_address(order.ranks[0].hostfile, 0) == (HERE, port)
    with ring_ports_guarded(order), closing(socket.socket()) as ring:
        ring.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        ring.bind((HERE, port))
        ring.listen(8)
        ring.settimeout(0.2)
        assert reaches(STRANGER, port), "by the socket beside it"
        assert reaches(MEMBER, port)
        with ring.accept()[0] as neighbour:
            assert neighbour.getpeername()[0] == MEMBER
        with pytest.raises(TimeoutError):
            ring.accept()


@pytest.mark.parametrize("odd", ["", "[]", "{}", "[[1]]", '[["x"]]', "[" * 9999])
def test_a_hostfile_that_names_no_port_holds_none(odd: str) -> None:
    assert own_address(odd, 0) is None
