"""The paths to other machines, measured and shown."""

import json

import pytest

from jupiterd.errors import ConflictError, PeerUnreachableError
from tests.support.ctl.documents import ALPHA, BETA, STATUS

ALIVE = [
    node | {"state": "alive", "name": node["name"].partition("\x1b")[0]} for node in STATUS["nodes"]
]


def way(target: str, interface: str, kind: str, **more: object) -> dict[str, object]:
    measured = {"rtt_ms": 0.412, "out_mbit_per_s": 938.4, "in_mbit_per_s": 941.0}
    known = {"target": target, "source": "192.168.1.5", "interface": interface, "kind": kind}
    return known | {"active": False, "answers": True, "note": ""} | measured | more


NOTHING = {"rtt_ms": None, "out_mbit_per_s": None, "in_mbit_per_s": None}

WIRED = way("192.168.1.6:47470", "eth0", "Ethernet")
WIRELESS = way(
    "192.168.2.6:47470", "wlan0", "Wi-Fi", rtt_ms=4.25, out_mbit_per_s=48.06, in_mbit_per_s=7.5
)


@pytest.fixture
def measured(daemon):
    """Let the daemon know two paths to another machine."""
    daemon.documents["status"] = STATUS | {"nodes": ALIVE}

    def ways(*paths: dict[str, object]) -> None:
        done = {"schema": "jupiter/v1", "node": BETA, "name": "beta", "paths": list(paths)}
        daemon.results["check.links"] = done

    ways(WIRED | {"active": True}, WIRELESS)
    return ways


def test_the_ways_to_every_other_machine_are_shown(measured, daemon, ctl, golden):
    ran = ctl("check", "links")
    golden("check_links.txt", ran.out)
    assert ran.err == "jupiterctl: measuring the paths to beta\n"
    assert daemon.executed == [("check.links", {"node": BETA})], "it doesn't measure itself"


def test_scripts_get_numbers_and_nothing_else(measured, ctl, golden):
    ran = ctl("check", "links", "-o", "json")
    golden("check_links.json", ran.out)
    assert ran.err == ""
    assert json.loads(ran.out)["from"] == {"id": ALPHA, "name": "alpha"}


def test_what_somebody_should_look_into_is_said(measured, ctl, golden):
    measured(
        WIRELESS | {"active": True},
        WIRED | NOTHING | {"note": "a measurement runs already"},
        way("10.0.0.6:47470", "en5", "Thunderbolt", answers=False, **NOTHING),
    )
    golden("check_links_hints.txt", ctl("check", "links").out)


def test_of_two_ways_of_one_kind_neither_is_complained_of(measured, ctl):
    measured(WIRED | {"active": True}, way("192.168.3.6:47470", "eth1", "Ethernet"))
    assert json.loads(ctl("check", "links", "-o", "json").out)["hints"] == []


def test_a_machine_is_named_by_its_name_or_id(measured, daemon, ctl):
    for name in ("beta", BETA[:6]):
        assert ctl("check", "links", name).exit_code == 0
    assert daemon.executed == [("check.links", {"node": BETA})] * 2


@pytest.mark.parametrize(("name", "status"), [("alpha", 2), ("omega", 6)])
def test_nothing_is_measured_where_no_other_machine_is_meant(measured, daemon, ctl, name, status):
    ran = ctl("check", "links", name)
    assert (ran.exit_code, ran.out, daemon.executed) == (status, "", [])


def test_alone_there_is_nothing_to_measure(daemon, ctl):
    ran = ctl("check", "links")
    assert (ran.exit_code, daemon.executed) == (6, [])
    assert "no other machine is alive" in ran.err


def test_a_machine_without_a_link_is_an_error_where_it_was_named(measured, daemon, ctl):
    daemon.refusals["check.links"] = PeerUnreachableError("there is no link to node b2b2b2b2")
    ran = ctl("check", "links", "beta")
    assert (ran.exit_code, ran.out) == (3, "")
    everybody = json.loads(ctl("check", "links", "-o", "json").out)
    assert everybody["paths"] == []
    assert everybody["hints"] == ["beta wasn't measured: there is no link to node b2b2b2b2"]


def test_a_measurement_that_runs_already_is_a_conflict(measured, daemon, ctl):
    daemon.refusals["check.links"] = ConflictError("a measurement runs already", "try again")
    ran = ctl("check", "links")
    assert (ran.exit_code, ran.out) == (7, "")
    assert "a measurement runs already\n\nhint: try again" in ran.err


def test_every_two_machines_are_measured(measured, daemon, ctl):
    third = ALIVE[1] | {"id": "c3" * 16, "name": "gamma"}
    daemon.documents["status"] = STATUS | {"nodes": [*ALIVE[:2], third]}
    ran = ctl("check", "links")
    assert [arguments for _, arguments in daemon.executed] == [
        {"node": BETA},
        {"node": "c3" * 16},
        {"node": "c3" * 16, "from": BETA},
    ]
    assert "measuring the paths between beta and gamma" in ran.err
    told = ran.out.partition("between the others")[2].split()
    assert told[:4] == ["FROM", "NODE", "INTERFACE", "KIND"]
    assert told[9:12] == ["beta", "gamma", "*"]
    (first, _) = json.loads(ctl("check", "links", "-o", "json").out)["others"]
    assert (first["from"]["name"], first["name"]) == ("beta", "gamma")


def rank(name: str, number: int, **more: object) -> dict[str, object]:
    told = {"device": "cpu", "engine": "torch/gloo", "result": "ok", "time_ms": 1.25, "note": ""}
    return {"node": name * 8, "name": name, "rank": number, **told, "mbit_per_s": 931.4} | more


def test_a_sum_that_is_right_everywhere_is_healthy(ctl, daemon):
    rows = [rank("alpha", 0), rank("beta", 1)]
    daemon.results["check.sync"] = {"engine": "torch/gloo", "reason": "as asked", "nodes": rows}
    ran = ctl("check", "sync", "--nodes", "all", "--engine", "torch")
    assert ran.exit_code == 0
    assert daemon.executed == [("check.sync", {"nodes": "all", "engine": "torch"})]
    assert "alpha" in ran.out
    assert "931 Mbit/s" in ran.out


@pytest.mark.parametrize("result", ["wrong", "unreachable", "failed"])
def test_anything_wrong_is_unhealthy(ctl, daemon, result):
    nothing = {"result": result, "time_ms": None, "mbit_per_s": None, "note": "why"}
    rows = [rank("alpha", 0), rank("beta", 1, **nothing)]
    daemon.results["check.sync"] = {"engine": "torch/gloo", "reason": "as asked", "nodes": rows}
    ran = ctl("check", "sync", "-o", "json")
    assert ran.exit_code == 8
    assert json.loads(ran.out)["nodes"][1]["result"] == result
