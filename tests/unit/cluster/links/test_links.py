"""The choice between several ways to one peer."""

import random
from dataclasses import replace

import pytest

from jupiterd.cluster.links.links import (
    ASK_AGAIN_S,
    CARRIES_S,
    CHOICE_LASTS_S,
    DOUBT_S,
    FIRST_LOOKS_S,
    GIVE_UP_S,
    HOLD_S,
    LOOK_S,
    MAX_PATHS,
    SETTLING_S,
    Links,
    Path,
)
from jupiterd.cluster.values.interface_kind import InterfaceKind

LATER = 1000.0
"""Long after the link was made."""


def path(name: str, kind: InterfaceKind = InterfaceKind.ETHERNET, interface: str = "") -> Path:
    return Path(f"{name}:1", f"source-{name}", interface or f"if-{name}", kind)


def linked(*paths: Path, decides: bool = True) -> Links:
    links = Links(decides=decides)
    for way in paths:
        links.learn(0.0, way)
    links.use(paths[0].target, "it answered first")
    return links


def measure(links: Links, now: float, **rtts_ms: float) -> None:
    for name, rtt_ms in rtts_ms.items():
        links.answered(now, f"{name}:1", rtt_ms / 1000)


def active_after(links: Links, began: float, duration_s: float, **rtts_ms: float) -> str:
    """Let these measurements come in for so long; return what is used then."""
    now = began
    while now <= began + duration_s:
        measure(links, now, **rtts_ms)
        links.choose(now)
        now += 1.0
    return links.active


def test_the_only_way_is_used_and_nothing_is_measured() -> None:
    links = linked(path("a"))
    assert links.active == "a:1"
    assert links.due(LATER) == []
    assert not links.choose(LATER)


def test_two_addresses_on_one_wire_are_not_measured() -> None:
    links = linked(path("a", interface="eth0"), path("b", interface="eth0"))
    links.carried(LATER)
    assert links.due(LATER) == []


def test_two_wires_are_measured_every_ten_seconds_and_no_more_often() -> None:
    links = linked(path("a"), path("b"))
    asked: list[str] = []
    for tick in range(4 * int(2 * LOOK_S)):
        now = LATER + tick / 4
        links.carried(now)
        asked += links.due(now)
    assert sorted(asked) == ["a:1", "a:1", "b:1", "b:1"]


def test_while_a_link_is_new_its_ways_are_measured_every_two_seconds() -> None:
    links = linked(path("a"), path("b"))
    asked: list[str] = []
    for tick in range(4 * int(2 * FIRST_LOOKS_S)):
        links.carried(tick / 4)
        asked += links.due(tick / 4)
    assert sorted(asked) == ["a:1", "a:1", "b:1", "b:1"]


def test_one_slow_answer_of_a_busy_machine_does_not_keep_a_new_link_from_the_better_way() -> None:
    links = linked(path("a", InterfaceKind.WIFI), path("b"))
    measure(links, 0.0, a=4.0, b=34.0)
    assert not links.choose(0.0)
    measure(links, FIRST_LOOKS_S, a=4.0, b=0.4)
    assert links.choose(FIRST_LOOKS_S)
    assert links.active == "b:1"


def test_the_better_one_is_taken_at_once_while_a_link_is_new() -> None:
    links = linked(path("a", InterfaceKind.WIFI), path("b"))
    measure(links, 1.0, a=2.0, b=0.4)
    assert links.choose(1.0)
    assert links.active == "b:1"
    assert links.reason == "better than a:1: Ethernet instead of Wi-Fi"


@pytest.mark.parametrize(
    ("rtt_ms", "moves"), [(5.0, True), (6.0, False), (9.9, False), (12.0, False)]
)
def test_a_way_that_works_is_left_for_half_its_round_trip_and_not_for_less(
    rtt_ms: float, moves: bool
) -> None:
    links = linked(path("a"), path("b"))
    assert active_after(links, LATER, HOLD_S - 1, a=10.0, b=rtt_ms) == "a:1", "not held yet"
    assert (active_after(links, LATER + HOLD_S, 2, a=10.0, b=rtt_ms) == "b:1") is moves


def test_a_gain_that_does_not_last_changes_nothing() -> None:
    links = linked(path("a"), path("b"))
    active_after(links, LATER, HOLD_S - 15, a=10.0, b=1.0)
    active_after(links, LATER + HOLD_S - 14, 60, a=1.0, b=1.0)
    assert links.active == "a:1"


def test_two_better_ones_that_take_turns_to_be_the_best_hold_nothing_up() -> None:
    links = linked(path("a", InterfaceKind.WIFI), path("b"), path("c"))
    for second in range(int(HOLD_S) + 2):
        is_odd = second % 2
        measure(links, LATER + second, a=4.0, b=1.2 + is_odd, c=2.2 - is_odd)
        links.choose(LATER + second)
    assert links.active != "a:1"


def test_a_better_kind_of_network_wins_at_a_similar_round_trip() -> None:
    kinds = sorted(InterfaceKind)
    for worse, better in zip(kinds[1:], kinds, strict=False):
        links = linked(path("a", worse), path("b", better))
        assert active_after(links, LATER, HOLD_S + 1, a=2.0, b=2.5) == "b:1"
        assert active_after(links, LATER + 100, 300, a=2.0, b=2.5) == "b:1", "and it stays"


def test_round_trips_below_a_millisecond_are_alike() -> None:
    links = linked(path("a"), path("b"))
    assert active_after(links, LATER, 300, a=0.9, b=0.05) == "a:1"


def test_a_link_is_not_moved_to_ipv4_while_two_machines_join() -> None:
    ipv6, ipv4 = path("[fe80::1%if]", interface="if"), path("a", interface="if")
    links = linked(ipv6, ipv4)
    assert active_after(links, 0.0, SETTLING_S - 1, a=0.1) == ipv6.target
    assert active_after(links, SETTLING_S, 1, a=0.1) == ipv4.target


def test_ipv4_is_preferred_on_the_same_wire() -> None:
    six = Path("[fe80::1%eth0]:1", "fe80::2%eth0", "eth0", InterfaceKind.ETHERNET)
    four = Path("192.0.2.1:1", "192.0.2.2", "eth0", InterfaceKind.ETHERNET)
    links = linked(six, four)
    links.carried(LATER)
    assert sorted(links.due(LATER)) == sorted([six.target, four.target])
    for second in range(int(HOLD_S) + 2):
        for way in (six, four):
            links.answered(LATER + second, way.target, 0.0003)
        links.choose(LATER + second)
    assert links.active == four.target
    assert links.reason.endswith("IPv4 instead of IPv6")
    links.carried(LATER + 100)
    assert links.due(LATER + 100) == [], "nothing more to be learnt"


def test_on_one_wire_it_does_not_count_which_address_answered_sooner() -> None:
    ipv6, ipv4 = path("[fe80::1%if]", interface="if"), path("a", interface="if")
    links = linked(ipv4, ipv6)
    links.answered(1.0, ipv4.target, 0.136)
    links.answered(1.0, ipv6.target, 0.033)
    assert not links.choose(1.0)
    links = linked(ipv6, ipv4)
    links.answered(1.0, ipv6.target, 0.033)
    links.answered(1.0, ipv4.target, 0.136)
    assert links.choose(LATER), "though the link is old: that won't change"
    assert links.reason.endswith("IPv4 instead of IPv6")
    links.answered(LATER, ipv4.target, 0.9)
    assert not links.choose(LATER + 2 * HOLD_S)


def test_ipv4_is_used_again_soon_after_it_has_failed_once() -> None:
    ipv4, ipv6 = path("a", interface="if"), path("[fe80::1%if]", interface="if")
    links = linked(ipv4, ipv6)
    links.carried(LATER)
    links.missed(LATER + DOUBT_S + 1, ipv4.target)
    links.answered(LATER + DOUBT_S + 1, ipv6.target, 0.001)
    assert links.choose(LATER + DOUBT_S + 1)
    for look in range(1, 10):
        links.carried(LATER + look * LOOK_S)
        for way in (ipv4, ipv6):
            links.answered(LATER + look * LOOK_S, way.target, 0.001)
        links.choose(LATER + look * LOOK_S)
    assert links.active == ipv4.target, "a ring of MLX can't be formed without it"


def test_a_dead_way_is_left_as_soon_as_another_has_answered() -> None:
    links = linked(path("a"), path("b"))
    links.carried(LATER)
    links.due(LATER)
    measure(links, LATER, a=1.0, b=1.0)
    assert links.due(LATER + DOUBT_S) == []
    now = LATER + DOUBT_S + 0.25
    assert sorted(links.due(now)) == ["a:1", "b:1"]
    links.missed(now + 0.8, "a:1")
    assert not links.choose(now + 0.8), "the other one was asked and hasn't answered"
    measure(links, now + 0.8, b=1.0)
    assert links.choose(now + 0.8)
    assert (links.active, links.reason) == ("b:1", "a:1 doesn't answer")


def test_a_way_that_carries_heartbeats_is_not_dead_when_one_measurement_is_lost() -> None:
    links = linked(path("a"), path("b"))
    links.carried(LATER)
    links.missed(LATER + 0.5, "a:1")
    assert not links.choose(LATER + 0.5)


def test_a_way_from_an_address_that_is_gone_is_left_at_once() -> None:
    links = linked(path("a"), path("b"))
    assert links.sources() == {"source-a", "source-b"}
    links.lose(frozenset({"source-a"}))
    assert links.has_another
    assert links.choose(LATER)
    assert links.active == "b:1"
    assert not links.has_another


def test_where_nothing_answers_the_way_in_use_stays() -> None:
    links = linked(path("a"), path("b"))
    for target in ("a:1", "b:1"):
        links.missed(LATER, target)
    assert not links.choose(LATER)
    assert links.active == "a:1"


def test_a_peer_that_is_off_is_asked_often_at_first_and_rarely_then() -> None:
    links = linked(path("a"), path("b"))
    links.carried(LATER)
    asked = [0, 0]
    for tick in range(4 * 200):
        now = LATER + tick / 4
        due = links.due(now)
        asked[now > LATER + GIVE_UP_S] += len(due)
        for target in due:
            links.missed(now, target)
    assert asked[0] >= 2 * (GIVE_UP_S - 2 * DOUBT_S) / ASK_AGAIN_S
    assert asked[1] <= 2 * (200 - GIVE_UP_S) / LOOK_S + 2


def test_one_that_comes_back_is_used_again_after_a_while() -> None:
    links = linked(path("fast"), path("slow", InterfaceKind.WIFI))
    measure(links, LATER, fast=0.5, slow=3.0)
    links.lose(frozenset({"source-fast"}))
    links.choose(LATER)
    assert links.active == "slow:1"
    assert active_after(links, LATER + 10, HOLD_S - 1, fast=0.5, slow=3.0) == "slow:1"
    assert active_after(links, LATER + 10 + HOLD_S, 2, fast=0.5, slow=3.0) == "fast:1"


def test_the_other_end_decides_where_its_id_is_smaller() -> None:
    links = linked(path("a"), path("b", InterfaceKind.WIFI), decides=False)
    assert links.note_choice(LATER, ["unknown:1", "b:1"])
    assert links.choose(LATER)
    assert (links.active, links.reason) == ("b:1", "the other end chose it")
    assert active_after(links, LATER, CHOICE_LASTS_S - 1, a=1.0, b=9.0) == "b:1"
    assert active_after(links, LATER + CHOICE_LASTS_S, HOLD_S + 2, a=1.0, b=9.0) == "a:1", (
        "told no more"
    )


def test_what_the_other_end_chose_is_left_when_it_is_dead_here() -> None:
    links = linked(path("a"), path("b"), decides=False)
    links.note_choice(LATER, ["b:1"])
    links.choose(LATER)
    links.missed(LATER + 5, "b:1")
    measure(links, LATER + 5, a=1.0)
    assert links.choose(LATER + 5)
    assert links.active == "a:1"


def test_whoever_decides_is_told_nothing() -> None:
    links = linked(path("a"), path("b"))
    links.note_choice(LATER, ["b:1"])
    assert not links.choose(LATER)


def test_both_ends_come_to_the_same_pair_whatever_they_measure() -> None:
    seed = 7
    rng = random.Random(seed)
    for _ in range(200):
        smaller, greater = (
            linked(path("a"), path("b"), path("c")),
            linked(path("c"), path("b"), path("a"), decides=False),
        )
        for second in range(120):
            now = LATER + second
            for links in (smaller, greater):
                rtts = {name: rng.choice([0.5, 1.0, 5.0, 20.0]) for name in "abc"}
                measure(links, now, **rtts)
                links.choose(now)
            greater.note_choice(now, [smaller.active])
            greater.choose(now)
            assert greater.active == smaller.active, f"seed {seed}"


def test_three_ways_never_chase_each_other_in_a_circle() -> None:
    links = linked(path("a", InterfaceKind.WIFI), path("b"), path("c", InterfaceKind.THUNDERBOLT))
    changes = 0
    for second in range(1000):
        measure(links, LATER + second, a=1.0, b=2.5, c=6.0)
        changes += links.choose(LATER + second)
    assert changes <= 1


def test_what_was_measured_to_carry_more_is_better() -> None:
    links = linked(path("a"), path("b"))
    links.measured(LATER, "a:1", 20e6)
    links.measured(LATER, "b:1", 900e6)
    assert active_after(links, LATER, HOLD_S + 1, a=0.4, b=0.4) == "b:1"
    assert links.reason.endswith("900 Mbit/s instead of 20")


def carries(links: Links, target: str) -> object:
    return next(row["mbit_per_s"] for row in links.to_plain(LATER) if row["target"] == target)


def test_what_a_path_carries_is_forgotten_after_an_hour() -> None:
    links = linked(path("a"), path("b"))
    links.measured(LATER, "b:1", 900e6)
    links.choose(LATER + CARRIES_S)
    assert carries(links, "b:1") == 900.0
    links.choose(LATER + CARRIES_S + 1)
    assert carries(links, "b:1") is None


def test_what_a_path_carries_is_forgotten_when_it_leads_another_way() -> None:
    links = linked(path("a"), path("b"))
    links.measured(LATER, "b:1", 900e6)
    links.learn(LATER, path("b"))
    assert carries(links, "b:1") == 900.0
    links.learn(LATER, replace(path("b"), interface="another"))
    assert carries(links, "b:1") is None


def test_what_loses_less_is_better() -> None:
    links = linked(path("a"), path("b"))
    for second in range(int(HOLD_S) + 10):
        now = LATER + second
        links.carried(now)  # heartbeats get through: it is no dead way, but a bad one
        links.missed(now, "a:1")
        measure(links, now, b=0.4)
        links.choose(now)
    assert links.active == "b:1"
    assert links.reason.endswith("it loses less")


def test_a_peer_with_many_addresses_fills_no_memory() -> None:
    links = linked(path("a"))
    for number in range(100):
        links.learn(LATER + number, path(f"p{number}"))
    assert len(links) == MAX_PATHS
    assert links.targets[0] == "a:1"


def test_what_is_known_is_shown_with_the_one_in_use_first() -> None:
    links = linked(path("a"), path("b", InterfaceKind.WIFI))
    measure(links, LATER, b=2.0)
    links.missed(LATER, "b:1")
    first, second = links.to_plain(LATER + 1)
    assert first["active"]
    assert first["reason"] == "it answered first"
    assert first["rtt_ms"] is None
    assert (second["target"], second["kind"], second["rtt_ms"]) == ("b:1", "Wi-Fi", 2.0)
    assert not second["answers"]
    assert second["loss"] == pytest.approx(0.25)
    assert SETTLING_S < LATER


@pytest.mark.parametrize("misses", [1, 30])
def test_a_cable_that_was_out_for_long_is_used_again_like_one_that_was_out_for_a_moment(
    misses: int,
) -> None:
    links = linked(path("wire"), path("air", InterfaceKind.WIFI))
    measure(links, LATER, wire=0.5, air=0.5)
    links.lose(frozenset({"source-wire"}))
    links.choose(LATER)
    assert links.active == "air:1"
    for number in range(misses):
        links.missed(LATER + number, "wire:1")
    back_s = LATER + misses
    for look in range(int(HOLD_S / LOOK_S) + 2):
        measure(links, back_s + look * LOOK_S, wire=0.5, air=0.5)
        links.choose(back_s + look * LOOK_S)
    assert links.active == "wire:1"


def test_a_way_within_the_machine_is_called_what_it_is() -> None:
    links = linked(path("127.0.0.1", InterfaceKind.THUNDERBOLT))
    assert [row["kind"] for row in links.to_plain(1.0)] == ["loopback"]
    links = linked(path("10.0.0.1", InterfaceKind.THUNDERBOLT))
    assert [row["kind"] for row in links.to_plain(1.0)] == ["Thunderbolt"]
