import json

import pytest

from jupiterd.cluster.health import alerts, health
from jupiterd.ctl.diagnose.status import ailments, cluster_line
from jupiterd.ctl.output.node_rows import hardware
from tests.support.ctl.documents import BETA, STATUS

SETTINGS = {
    "schema": "jupiter/v1",
    "settings": [
        {"name": name, "value": value, "source": source}
        for name, value, source in (
            ("name", "beta", "default"),
            ("port", 47470, "default"),
            ("peer", ["10.0.0.7", "attic:5000"], "flag"),
            ("join", "", "default"),
            ("metrics", None, "default"),
            ("local", True, "environment"),
            ("threads", 4, "/etc/jupiter/jupiter.yaml"),
        )
    ],
}


def test_the_screen_for_people(daemon, ctl, golden):
    ran = ctl("status")
    assert (ran.exit_code, ran.err) == (0, "")
    golden("status.txt", ran.out)


def test_a_name_from_another_machine_cannot_steer_the_terminal(daemon, ctl):
    assert "\x1b" not in ctl("status").out


def test_json_is_the_document_of_the_daemon(daemon, ctl, golden):
    ran = ctl("status", "-o", "json")
    assert json.loads(ran.out) == STATUS
    golden("status.json", ran.out)


def test_jsonl_is_the_same_document_on_one_line(daemon, ctl):
    ran = ctl("-o", "jsonl", "status")
    assert ran.out.count("\n") == 1
    assert json.loads(ran.out) == STATUS


def test_settings_are_told_with_where_each_comes_from_and_defaults_last(daemon, ctl, golden):
    daemon.documents["settings"] = SETTINGS
    ran = ctl("status", "--settings")
    assert (ran.exit_code, ran.err) == (0, "")
    golden("settings.txt", ran.out)
    assert json.loads(ctl("status", "--settings", "-o", "json").out) == SETTINGS


def test_settings_and_a_check_are_two_questions(ctl):
    ran = ctl("status", "--settings", "--check")
    assert ran.exit_code == 2
    assert ran.err.startswith("jupiterctl: error: --check looks at the cluster")


def test_check_exits_with_8_and_names_the_first_trouble(daemon, ctl):
    ran = ctl("status", "--check")
    assert ran.exit_code == 8
    assert "quiet-comet" in ran.out
    assert ran.err == (
        "jupiterctl: error: 1 thing wrong: beta hasn't been heard for 20 s\n\n"
        "hint: is it switched on?\n"
    )


def test_check_is_content_with_a_healthy_cluster(daemon, ctl):
    note = {"code": "news", "severity": "info", "title": "just so you know", "hint": ""}
    daemon.documents["status"] = STATUS | {"health": [note]}
    assert ctl("status", "--check").exit_code == 0


def test_the_health_of_one_machine_is_not_that_of_another(daemon, ctl):
    own, other = (row["id"] for row in STATUS["nodes"][:2])
    gone = {"code": "node-gone", "severity": "warning", "title": "beta is gone", "node": other}
    full = {"code": "disk", "severity": "error", "title": "this node can't write", "node": None}
    status = STATUS | {"node": STATUS["node"] | {"id": own}}
    daemon.documents["status"] = status | {"health": [gone]}
    assert ctl("status", "--check").exit_code == 8
    assert ctl("status", "--check", "--node", "self").exit_code == 0
    assert ctl("status", "--check", "--node", other).exit_code == 8
    assert ctl("status", "--check", "--node", "nobody").exit_code == 6
    daemon.documents["status"] = status | {"health": [gone, full]}
    assert ctl("status", "--check", "--node", "self").exit_code == 8
    assert ctl("status", "--node", "self").exit_code == 2


def test_everything_but_information_counts_as_trouble():
    severities = ("info", "warning", "error")
    found = ailments({"health": [{"severity": each} for each in severities]})
    assert [item["severity"] for item in found] == ["warning", "error"]


def test_a_cluster_is_well_whose_text_is_mostly_dropped():
    dropped = {"code": "mostly-dropped", "severity": "warning", "title": "filter dropped ..."}
    assert ailments({"health": [dropped]}) == []


def test_each_line_of_health_has_its_severity_code_age_and_fix(daemon, ctl):
    gone = STATUS["health"][0]
    verdict = {
        "code": "verdict", "severity": "info", "title": "round 1: HOLD", "hint": "look", "age_s": 9,
    }  # fmt: skip
    old = {"code": "alone", "severity": "info", "title": "this node is alone", "hint": ""}
    daemon.documents["status"] = STATUS | {"health": [gone, verdict, old]}
    assert [
        line for line in ctl("status").out.splitlines() if line.startswith(("health", "  "))
    ] == [
        "health   warning: beta hasn't been heard for 20 s (node-gone for 4 min 10 s)",
        "         hint: is it switched on?",
        "health   info: round 1: HOLD (verdict 9 s ago)",
        "         hint: look",
        "health   info: this node is alone (alone)",
    ]


def test_a_daemon_without_cluster_cycle_or_nodes_is_shown(daemon, ctl, golden):
    empty = dict.fromkeys(STATUS["cluster"])
    daemon.documents["status"] = STATUS | {
        "cluster": empty, "cycle": None, "nodes": [], "health": []
    }  # fmt: skip
    ran = ctl("status")
    assert ran.exit_code == 0
    golden("status_alone.txt", ran.out)


def test_a_machine_that_waits_outside_shows_its_words(daemon, ctl):
    own = STATUS["node"] | {"words": "radar canvas tiny plug"}
    daemon.documents["status"] = STATUS | {"node": own}
    assert "\nwords    radar canvas tiny plug\n" in ctl("status").out


def test_a_group_without_a_leader_says_so():
    line = cluster_line(STATUS | {"cluster": STATUS["cluster"] | {"leader": None}})
    assert "no leader" in line


def test_node_list_for_people_and_for_scripts(daemon, ctl, golden):
    golden("node_list.txt", ctl("node", "list").out)
    document = json.loads(ctl("node", "list", "-o", "json").out)
    assert document == {"schema": "jupiter/v1", "nodes": STATUS["nodes"]}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (None, "N/A"),
        ({}, "N/A"),
        ({"cores": 8, "ram_bytes": 16 << 30, "gpus": []}, "8 cores, 16.0 GiB"),
        (
            {
                "cores": 8,
                "ram_bytes": 1 << 30,
                "gpus": [{"name": "A"}, {"name": "B"}, {"name": "A"}],
            },
            "8 cores, 1.0 GiB, 2 x A, B",
        ),
    ],
)
def test_a_machine_in_a_few_words(record, expected):
    assert hardware(record) == expected


def test_what_people_have_dismissed_is_named_in_a_line_and_passes_the_check(daemon, ctl):
    seen = {"key": "node-gone:a", "code": "node-gone", "severity": "warning", "title": "beta"}
    daemon.documents["status"] = STATUS | {"health": [], "dismissed": [seen]}
    ran = ctl("status", "--check")
    assert ran.exit_code == 0
    assert "health   good\n         dismissed: node-gone\n" in ran.out


@pytest.mark.parametrize("code", sorted({*health.TABLE, *alerts.TABLE}))
def test_no_alarm_about_another_machine_fails_the_check_of_this_one(daemon, ctl, code):
    line = {"code": code, "severity": "error", "title": "beta", "hint": "look", "node": BETA}
    daemon.documents["status"] = STATUS | {"health": [line]}
    assert ctl("status", "--check", "--node", "self").exit_code == 0
