"""An address of gloo is read and written anew, and whatever is none is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.training.gloo_address import DIALED, NOT_DIALED, port_of, readdressed
from jupiterd.cluster.training.tunnel_plan import TunnelPlan
from jupiterd.errors import MalformedError
from jupiterd.ids import NodeId


def told(host: bytes, port: int, rest: bytes, family: int = 2) -> bytes:
    """What a rank of gloo tells, as seen in torch 2.13."""
    name = struct.pack("=Q", len(host)) + host
    return name + struct.pack("=QH", 136, family) + struct.pack(">H", port) + b"\x7f\0\0\1" + rest


@given(st.binary(max_size=64), st.integers(1, 65535), st.binary(max_size=200))
def test_an_address_is_replaced_and_all_else_stays(host: bytes, port: int, rest: bytes):
    value = told(host, port, rest)
    assert port_of(value) == port
    changed = readdressed(value, DIALED, 7)
    assert port_of(changed) == 7
    assert changed == told(host, 7, rest).replace(b"\0\x07\x7f\0\0\1", b"\0\x07\0\0\0\0", 1)
    assert DIALED < b"\x7f\0\0\1" < NOT_DIALED, "of two ranks the greater one dials"


@given(st.binary(max_size=40))
def test_what_is_no_address_is_refused(value: bytes):
    with pytest.raises(MalformedError):
        port_of(value[:17])


def test_an_address_of_another_family_is_refused():
    with pytest.raises(MalformedError):
        port_of(told(b"vm", 1, b"", family=10))


def test_a_plan_of_tunnels_has_a_host_for_each_rank():
    plan = TunnelPlan((NodeId("a"), NodeId("b"), NodeId("c")), ("10.0.0.1", "10.0.0.2", "10.0.0.3"))
    assert TunnelPlan.from_plain(plan.to_plain()) == plan
    assert plan.neighbours(0) == (2, 1)
    assert TunnelPlan(plan.gang[:2], plan.hosts[:2]).neighbours(1) == (0,)
    for broken in (None, {}, {"gang": ["a"], "hosts": []}, {"gang": [1], "hosts": ["h"]}):
        with pytest.raises(MalformedError):
            TunnelPlan.from_plain(broken)
