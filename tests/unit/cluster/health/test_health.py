from dataclasses import replace

import pytest

from jupiterd.cluster.health.health import (
    TABLE,
    ClusterView,
    HealthWarning,
    NodeView,
    Severity,
    WaitingView,
    judge,
)
from jupiterd.cluster.membership.failure_detector import Liveness
from tests.support.cluster.building import NODES

ME = NodeView(NODES[0], "desk", Liveness.ALIVE, ("torch",))
OTHER = NodeView(NODES[1], "lap", Liveness.ALIVE)
WELL = ClusterView(NODES[0], (ME, OTHER))


def codes(view: ClusterView) -> list[str]:
    return [warning.code for warning in judge(view)]


def test_a_cluster_that_is_well_has_no_warnings() -> None:
    assert judge(WELL) == []


@pytest.mark.parametrize(
    ("view", "code"),
    [
        (replace(WELL, leader=None), "no-leader"),
        (replace(WELL, nodes=(ME,)), "alone"),
        (replace(WELL, nodes=(ME, replace(OTHER, liveness=Liveness.SUSPECT))), "node-suspect"),
        (replace(WELL, nodes=(ME, replace(OTHER, liveness=Liveness.GONE))), "node-gone"),
        (replace(WELL, nodes=(replace(ME, engines=()), OTHER)), "no-engine"),
        (replace(WELL, pending_reason="the cluster is closed"), "pending-node"),
        (replace(WELL, wanted_cluster="aaaaaaaa, and nobody answers yet"), "sought"),
        (
            replace(WELL, contradictions=("lap has chip {M2}, and c.yaml:1 says M4",)),
            "contradiction",
        ),
        (replace(WELL, without_effect=("c.yaml:1: ssh_user isn't needed",)), "no-effect"),
    ],
)
def test_each_trouble_is_named_alone(view: ClusterView, code: str) -> None:
    assert codes(view) == [code]


def test_who_looks_for_a_cluster_is_not_told_besides_that_it_is_alone() -> None:
    assert codes(replace(WELL, nodes=(ME,), wanted_cluster="aaaaaaaa, and nobody answers yet")) == [
        "sought"
    ]


def test_who_keeps_to_this_machine_is_told_what_finds_others() -> None:
    (alone,) = judge(replace(WELL, nodes=(ME,), is_local=True))
    assert alone.code == "alone-locally"
    assert "without --local" in alone.hint


def test_who_keeps_to_this_machine_need_not_care_for_the_clusters_of_others_there() -> None:
    beside = replace(WELL, is_local=True, pending_reason="jupiter (9f08bd14) is closed")
    (found,) = judge(beside)
    assert (found.code, found.severity) == ("pending-locally", Severity.INFO)
    assert "nothing to do for a cluster of your own" in found.hint
    assert codes(replace(beside, has_token=True)) == ["pending-node"], "it was told to join"


def test_of_machines_that_are_called_alike_the_ids_are_told() -> None:
    gone = replace(OTHER, name="desk", liveness=Liveness.GONE)
    newcomer = WaitingView(NODES[2], "desk", "cotton proof")
    left, waits = judge(replace(WELL, nodes=(ME, gone), waiting=(newcomer,)))
    assert left.title == f"desk ({NODES[1][:8]}) is gone"
    assert waits.hint.endswith(f"jupiterctl node approve {NODES[2][:8]}")


def test_the_engines_of_a_node_that_is_gone_are_of_no_use() -> None:
    gone = replace(OTHER, liveness=Liveness.GONE, engines=("mlx",))
    assert "no-engine" in codes(replace(WELL, nodes=(replace(ME, engines=()), gone)))


def test_the_gravest_come_first_and_name_whom_they_concern() -> None:
    gone = replace(OTHER, liveness=Liveness.GONE)
    nameless = replace(gone, node=NODES[2], name="")
    warnings = judge(replace(WELL, leader=None, nodes=(ME, gone, nameless)))
    assert [warning.code for warning in warnings] == ["no-leader", "node-gone", "node-gone"]
    assert [warning.title for warning in warnings[1:]] == ["eeeeeeee is gone", "lap is gone"]


def test_a_reason_with_braces_in_it_is_shown_as_it_is() -> None:
    (warning,) = judge(replace(WELL, pending_reason="{label} is closed"))
    assert warning == HealthWarning(
        "pending-node",
        Severity.WARNING,
        "this node waits to be let in: {label} is closed",
        "run on any member: jupiterctl cluster open",
    )


def test_every_warning_has_a_hint() -> None:
    assert all(row.hint and row.title for row in TABLE.values())


def test_who_waits_is_shown_with_its_words_and_the_command() -> None:
    newcomer = WaitingView(NODES[2], "new {x}; reboot", "radar canvas tiny plug")
    (warning,) = judge(replace(WELL, waiting=(newcomer,)))
    assert warning == HealthWarning(
        "node-waits",
        Severity.INFO,
        "new {x}; reboot (eeeeeeee) waits to be let in: radar canvas tiny plug",
        "if the new machine shows the same words: jupiterctl node approve eeeeeeee",
        NODES[2],
    )


def test_who_waits_itself_is_told_what_lets_it_in() -> None:
    command = "jupiterctl node approve desk"
    (warning,) = judge(replace(WELL, pending_reason="closed", pending_command=command))
    assert warning.hint == f"run on any member: {command}"


@pytest.mark.parametrize(
    ("program", "title", "hint"),
    [
        ("0.2.0", "lap runs jupiterd 0.2.0 and the leader 0.1.3: no work", "upgrade the leader"),
        ("0.3.0", "0.1.3, more than one minor version apart", "upgrade the leader"),
        ("0.0.9", "lap runs jupiterd 0.0.9", "upgrade lap: "),
    ],
)
def test_a_member_of_another_version_than_the_leader_is_named_with_what_to_do(
    program: str, title: str, hint: str
) -> None:
    mine, theirs = replace(ME, program="0.1.3"), replace(OTHER, program=program)
    (found,) = judge(replace(WELL, nodes=(mine, theirs)))
    assert (found.code, found.severity) == ("version-differs", Severity.WARNING)
    assert title in found.title
    assert hint in found.hint


@pytest.mark.parametrize("program", ["0.1.0", "0.1.99", "", "unheard of"])
def test_a_patch_version_or_an_untold_one_is_no_trouble(program: str) -> None:
    mine, theirs = replace(ME, program="0.1.3"), replace(OTHER, program=program)
    assert judge(replace(WELL, nodes=(mine, theirs))) == []


def test_the_version_of_a_node_that_is_gone_troubles_nobody() -> None:
    gone = replace(OTHER, program="0.9.0", liveness=Liveness.GONE)
    assert codes(replace(WELL, nodes=(replace(ME, program="0.1.0"), gone))) == ["node-gone"]
