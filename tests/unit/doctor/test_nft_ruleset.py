"""What a packet filter does with a connection, from rulesets as nft prints them."""

import json
from typing import Any

import pytest

from jupiterd.doctor.nft_ruleset import Packet, PacketOutcome, outcome

JOINING = Packet("tcp", 47470, "eth0", "192.168.1.7", "192.168.1.5")
FINDING = Packet("udp", 5353, "eth0", "192.168.1.7", "224.0.0.251")

ACCEPT, DROP = {"accept": None}, {"drop": None}
ESTABLISHED = [
    {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": ["established", "related"]}},
    ACCEPT,
]


def match(left: Any, right: Any, op: str = "==") -> dict[str, Any]:
    return {"match": {"op": op, "left": left, "right": right}}


def field(protocol: str, name: str) -> dict[str, Any]:
    return {"payload": {"protocol": protocol, "field": name}}


def meta(key: str) -> dict[str, Any]:
    return {"meta": {"key": key}}


def ruleset(*rules: list[Any], policy: str = "drop", **chains: list[list[Any]]) -> str:
    """Return one table whose chain `input` has these rules; others are chains of their own."""
    table = {"family": "inet", "table": "filter"}
    hooked = {"name": "input", "hook": "input", "policy": policy, "type": "filter"}
    objects: list[Any] = [{"metainfo": {}}, {"chain": table | hooked}]
    for name, of_chain in {"input": list(rules), **chains}.items():
        objects += [{"rule": table | {"chain": name, "expr": expr}} for expr in of_chain]
    return json.dumps({"nftables": objects})


def test_without_rules_everybody_gets_in():
    assert outcome('{"nftables": [{"metainfo": {}}]}', JOINING) is PacketOutcome.ACCEPTED


def test_a_policy_of_drop_keeps_newcomers_out_though_old_connections_go_on():
    assert outcome(ruleset(ESTABLISHED), JOINING) is PacketOutcome.DROPPED
    assert outcome(ruleset(ESTABLISHED, policy="accept"), JOINING) is PacketOutcome.ACCEPTED


@pytest.mark.parametrize(
    "rule",
    [
        [match(field("tcp", "dport"), 47470)],
        [match(field("tcp", "dport"), {"set": [22, {"range": [47000, 48000]}]})],
        [match(field("th", "dport"), 47470)],
        [match(field("ip", "saddr"), {"prefix": {"addr": "192.168.0.0", "len": 16}})],
        [match(field("ip", "saddr"), {"range": ["192.168.1.1", "192.168.1.9"]})],
        [match(meta("iifname"), "eth*"), match(meta("l4proto"), {"set": ["tcp", "udp"]})],
        [match(field("tcp", "dport"), 22, "!="), {"counter": {"packets": 0, "bytes": 0}}],
        [match({"ct": {"key": "state"}}, "new")],
    ],
)
def test_a_rule_about_it_lets_it_in(rule: list[Any]):
    assert outcome(ruleset([*rule, ACCEPT]), JOINING) is PacketOutcome.ACCEPTED


@pytest.mark.parametrize(
    "rule",
    [
        [match(field("udp", "dport"), 47470)],
        [match(field("tcp", "dport"), {"set": [22, 80]})],
        [match(field("ip", "saddr"), {"prefix": {"addr": "10.0.0.0", "len": 8}})],
        [match(meta("iifname"), "lo")],
        [match(field("ip6", "saddr"), "fe80::1")],
    ],
)
def test_a_rule_about_others_does_not(rule: list[Any]):
    assert outcome(ruleset([*rule, ACCEPT]), JOINING) is PacketOutcome.DROPPED


def test_the_first_rule_that_decides_counts():
    mine = [match(field("tcp", "dport"), 47470)]
    assert outcome(ruleset([*mine, DROP], [ACCEPT]), JOINING) is PacketOutcome.DROPPED
    assert outcome(ruleset([*mine, ACCEPT], [DROP]), JOINING) is PacketOutcome.ACCEPTED
    refused = [*mine, {"reject": {"type": "tcp reset"}}]
    assert outcome(ruleset(refused, policy="accept"), JOINING) is PacketOutcome.DROPPED


def test_multicast_is_told_by_its_group_or_its_kind():
    group = [match(field("ip", "daddr"), "224.0.0.251"), match(field("udp", "dport"), 5353), ACCEPT]
    for rule in (group, [match(meta("pkttype"), "multicast"), ACCEPT]):
        assert outcome(ruleset(rule), FINDING) is PacketOutcome.ACCEPTED
        assert outcome(ruleset(rule), JOINING) is PacketOutcome.DROPPED


def test_another_chain_may_decide_or_send_it_back():
    jump = [{"jump": {"target": "lan"}}]
    lets_in = [match(field("tcp", "dport"), 47470), ACCEPT]
    assert outcome(ruleset(jump, lan=[lets_in]), JOINING) is PacketOutcome.ACCEPTED
    assert (
        outcome(ruleset(jump, lan=[[{"return": None}], lets_in]), JOINING) is PacketOutcome.DROPPED
    )
    assert (
        outcome(ruleset(jump, lan=[[{"jump": {"target": "lan"}}]]), JOINING)
        is PacketOutcome.DROPPED
    )


def test_a_map_of_states_decides_about_those_it_names():
    states = {"set": [["established", ACCEPT], ["invalid", DROP]]}
    by_state = [{"vmap": {"key": {"ct": {"key": "state"}}, "data": states}}]
    assert outcome(ruleset(by_state), JOINING) is PacketOutcome.DROPPED
    states["set"].append(["new", ACCEPT])
    assert outcome(ruleset(by_state), JOINING) is PacketOutcome.ACCEPTED


@pytest.mark.parametrize(
    "strange",
    [{"xt": None}, match(field("ip", "saddr"), "@friends"), match({"fib": {"flags": "daddr"}}, 1)],
)
def test_what_is_not_understood_makes_the_answer_unsure(strange: dict[str, Any]):
    assert outcome(ruleset([strange, ACCEPT]), JOINING) is PacketOutcome.UNSURE
    assert outcome(ruleset([strange, DROP], policy="accept"), JOINING) is PacketOutcome.UNSURE
    only_counted = [strange, {"counter": {"packets": 1, "bytes": 1}}]
    assert outcome(ruleset(only_counted), JOINING) is PacketOutcome.DROPPED


def test_of_two_tables_each_must_let_it_in():
    open_one, closed = json.loads(ruleset([ACCEPT])), json.loads(ruleset(policy="drop"))
    for row in closed["nftables"][1:]:
        row["chain"]["table"] = "other"
    both = {"nftables": [*open_one["nftables"], *closed["nftables"]]}
    assert outcome(json.dumps(both), JOINING) is PacketOutcome.DROPPED
