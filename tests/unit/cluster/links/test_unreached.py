"""What it means that a machine is heard, or named, and can't be reached."""

from dataclasses import replace

import pytest

from jupiterd.cluster.health.health import TABLE, ClusterView, NodeView, judge
from jupiterd.cluster.links.unreached import (
    MAX_NAMED,
    Reached,
    Unreached,
    diagnoses,
    read_unreached,
    unreached_rows,
)
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.text.health_words import WELL_ANYWAY
from jupiterd.cluster.values.severity import Severity
from tests.support.cluster.building import NODES

HEARD = Unreached("10.57.0.2:47470", Reached.NOTHING, is_heard=True)
ALONE = ClusterView(NODES[0], (NodeView(NODES[0], "desk", Liveness.ALIVE, ("torch",)),))


@pytest.mark.parametrize(
    ("found", "code", "told"),
    [
        (HEARD, "tcp-blocked", "client isolation"),
        (replace(HEARD, reached=Reached.CONNECTED), "tcp-silent", "MTU"),
        (replace(HEARD, reached=Reached.GREETED, is_heard=False), "tcp-silent", "MTU"),
        (replace(HEARD, is_heard=False), "peer-unreached", "--peer"),
        (replace(HEARD, reached=Reached.REFUSED, is_heard=False), "peer-unreached", "listens"),
    ],
)
def test_each_pair_of_facts_has_its_diagnosis(found: Unreached, code: str, told: str) -> None:
    (diagnosis,) = diagnoses([found])
    assert diagnosis.code == code
    assert "10.57.0.2:47470" in diagnosis.title
    assert told in f"{diagnosis.title} {diagnosis.hint}"


def test_what_is_told_to_others_comes_out_as_it_went_in_and_nonsense_as_nothing() -> None:
    named = replace(HEARD, is_heard=False)
    silent = replace(HEARD, reached=Reached.GREETED, name="ca2")
    assert read_unreached(unreached_rows([HEARD, named, silent])) == (HEARD, silent)
    assert len(unreached_rows([HEARD] * 100)) == MAX_NAMED
    for told in (None, "x", [1], [["a", 9, True, "n"]], [["a", 0, 1, "n"]], [[1, 0, True, "n"]]):
        assert read_unreached(told) == ()
    (cleaned,) = read_unreached([["10.0.0.2:1\x1b[2J" * 9, 0, True, "n\n" * 99]])
    assert "\x1b" not in cleaned.address
    assert len(cleaned.name) <= 64


def test_a_member_is_told_by_its_name() -> None:
    (diagnosis,) = diagnoses([replace(HEARD, name="ca2")])
    assert diagnosis.title.startswith("ca2 at 10.57.0.2:47470: heard by multicast")


def test_whoever_announces_a_hundred_addresses_gets_one_short_line() -> None:
    many = [replace(HEARD, address=f"10.57.0.{number}:1") for number in range(100)]
    (diagnosis,) = diagnoses(many)
    assert diagnosis.title.count(":1") == MAX_NAMED
    assert "and 97 more addresses" in diagnosis.title


def test_who_hears_somebody_is_not_told_to_start_another_machine() -> None:
    (line,) = judge(replace(ALONE, unreached=(HEARD,)))
    assert line.code == "tcp-blocked"
    assert line.severity is Severity.WARNING


def test_an_announcement_alone_makes_no_container_unhealthy() -> None:
    codes = {each.code for each in diagnoses([HEARD, replace(HEARD, reached=Reached.CONNECTED)])}
    assert codes <= WELL_ANYWAY
    assert TABLE["peer-unreached"].severity is Severity.INFO
