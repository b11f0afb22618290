import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import NodeRemoved
from jupiterd.cluster.membership.merge_plan import brief, notes, obstacles, read_brief
from jupiterd.errors import RefusedError
from jupiterd.ids import NodeId
from tests.support.cluster.building import admitted, commanded, started
from tests.unit.cluster.membership.test_cluster_merge import OF_A, OF_C, ONE, OTHER, B, cluster

STOPPED = commanded("stopped", 1)


def test_a_brief_survives_the_wire() -> None:
    told = brief(cluster(OTHER, OF_C, started(), STOPPED, admitted(B)))
    assert read_brief(json.loads(json.dumps(told.to_plain()))) == told
    assert [cycle.running for cycle in told.cycles] == [False]


@given(st.recursive(st.none() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(
    st.sampled_from(["id", "name", "nodes", "removed", "cycles"]), v)))  # fmt: skip
def test_what_is_no_brief_is_refused(told: object) -> None:
    with pytest.raises(RefusedError) as refused:
        read_brief(told)
    assert "same version" in refused.value.hint


def test_a_running_cycle_of_the_absorbed_stands_in_the_way_and_one_of_the_other_does_not() -> None:
    running, stopped = brief(cluster(OTHER, OF_C, started())), brief(cluster(ONE, OF_A, started()))
    ((title, hint),) = obstacles(running, stopped)
    assert (title, hint) == (
        "cycle dddddddd (python) is running in 2222 (22222222)",
        "stop it first: jupiterctl cycle stop dddddddd",
    )
    at_rest = brief(cluster(OTHER, OF_C, started(), STOPPED))
    assert obstacles(at_rest, stopped) == []


def test_people_are_told_of_names_domains_and_removed_keys() -> None:
    gone = NodeRemoved(B, (f"{OF_C.node}/u/2",), {})
    twin = NodeId("a0" + "1" * 30)
    ours = brief(cluster(OTHER, OF_C, admitted(B), gone, admitted(twin), started()))
    told = notes(ours, brief(cluster(ONE, OF_A, admitted(B), started())))
    assert told[0].startswith("1111 (11111111) goes on, with its name")
    assert "two nodes are called name-a: a0111111 and aaaaaaaa" in told
    assert any(note.startswith("name-b (bbbbbbbb) was removed from 2222") for note in told)
    assert any(note.startswith("both know the domain python") for note in told)
