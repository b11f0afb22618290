"""Stopping, pausing, resuming, extending and dismissing a cycle, as people type it."""

import pytest

from tests.support.ctl.documents import FINISHED, cycle

START = ("cycle", "start", "--domain", "python", "--rounds", "2", "--size", "1m")


@pytest.mark.parametrize(("given", "sent"), [((), {}), (("c0ffee",), {"cycle": "c0ffee"})])
def test_resume_goes_on_with_a_cycle_and_says_how_to_follow_it(daemon, ctl, given, sent):
    daemon.results["cycle.resume"] = {"schema": "jupiter/v1", "cycle": cycle()["id"]}
    ran = ctl("cycle", "resume", *given)
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out == "cycle c0ffee00 goes on\nfollow it with: jupiterctl cycle watch\n"
    assert daemon.executed == [("cycle.resume", sent)]


def test_resume_waits_for_the_end_as_start_does(daemon, ctl):
    daemon.results["cycle.resume"] = {"schema": "jupiter/v1", "cycle": cycle()["id"]}
    for document in (cycle(), FINISHED):
        daemon.watched.put(document)
    ran = ctl("cycle", "resume", "--wait")
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.startswith("cycle c0ffee00 goes on\n")
    assert ran.out.splitlines()[-3] == "verdict: PROMOTE"
    daemon.watched.put(cycle())
    assert ctl("cycle", "resume", "--wait", "--timeout", "0.3s").exit_code == 4


def test_resume_carries_an_answer_and_changed_settings(daemon, ctl):
    daemon.results["cycle.resume"] = {"schema": "jupiter/v1", "cycle": cycle()["id"]}
    ctl("cycle", "resume", "c0ffee", "--redo")
    ctl("cycle", "resume", "--redo", "filter", "--auto")
    ctl("cycle", "resume", "--set", "mix_ratio.synthetic_share=0.2", "--set", "a = b=c")
    settings = {"mix_ratio.synthetic_share": "0.2", "a": "b=c"}
    assert [arguments for _, arguments in daemon.executed] == [
        {"cycle": "c0ffee", "redo": "last"}, {"redo": "filter", "auto": True},
        {"settings": settings},
    ]  # fmt: skip


def test_a_setting_without_a_value_never_reaches_the_daemon(daemon, ctl):
    ran = ctl("cycle", "resume", "--set", "temperature")
    assert ran.exit_code == 2
    assert "expected KEY=VALUE" in ran.err
    assert daemon.executed == []


def test_a_cycle_that_is_to_wait_after_each_phase_says_so_to_the_daemon(daemon, ctl):
    for option in ((), ("--auto",), ("--interactive",)):
        ctl(*START, *option)
    told = [arguments.get("interactive") for _, arguments in daemon.executed]
    assert told == [None, None, True]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ((), {"rounds": 1}),
        (("--rounds", "3"), {"rounds": 3}),
        (("c0ffee", "--rounds", "2"), {"rounds": 2, "cycle": "c0ffee"}),
    ],
)
def test_extend_gives_a_cycle_more_rounds_and_says_how_to_follow_it(daemon, ctl, given, sent):
    told = {"schema": "jupiter/v1", "cycle": cycle()["id"], "rounds": 4, "from_round": 3}
    daemon.results["cycle.extend"] = told
    ran = ctl("cycle", "extend", *given)
    assert ran.out == "cycle c0ffee00 has 4 rounds\nfollow it with: jupiterctl cycle watch\n"
    assert daemon.executed == [("cycle.extend", sent)]


@pytest.mark.parametrize(
    ("was", "lines"),
    [
        (
            "stopped",
            [
                "cycle c0ffee00 has 4 rounds; it was stopped, and goes on now with round 3",
                "follow it with: jupiterctl cycle watch",
            ],
        ),
        (
            "finished",
            [
                "cycle c0ffee00 has 4 rounds; it had ended, and goes on now with round 3",
                "follow it with: jupiterctl cycle watch",
            ],
        ),
        (
            "paused",
            [
                "cycle c0ffee00 has 4 rounds, and stays paused",
                "go on with it: jupiterctl cycle resume c0ffee00",
            ],
        ),
        (
            "running",
            ["cycle c0ffee00 has 4 rounds", "follow it with: jupiterctl cycle watch"],
        ),
    ],
)
def test_extend_says_whether_the_cycle_runs_now(daemon, ctl, was, lines):
    told = {"cycle": cycle()["id"], "rounds": 4, "from_round": 3, "was": was}
    daemon.results["cycle.extend"] = told
    assert ctl("cycle", "extend").out.splitlines() == lines


def test_extend_waits_for_the_end_as_start_does(daemon, ctl):
    daemon.results["cycle.extend"] = {"cycle": cycle()["id"], "rounds": 2, "from_round": 2}
    for document in (cycle(), FINISHED):
        daemon.watched.put(document)
    ran = ctl("cycle", "extend", "--wait")
    assert ran.out.splitlines()[0] == "cycle c0ffee00 has 2 rounds"
    assert ran.out.splitlines()[-3] == "verdict: PROMOTE"


@pytest.mark.parametrize(("given", "sent"), [((), {}), (("c0ffee",), {"cycle": "c0ffee"})])
def test_dismiss_names_what_no_alarm_is_about_any_more(daemon, ctl, given, sent):
    daemon.results["cycle.dismiss"] = {"dismissed": [{"id": cycle()["id"], "name": "python"}]}
    assert ctl("cycle", "dismiss", *given).out == "no alarm about python (c0ffee00)\n"
    assert daemon.executed == [("cycle.dismiss", sent)]


@pytest.mark.parametrize("verb", ["cycle.rollback", "model.promote"])
def test_of_a_cycle_that_has_ended_it_is_told_how_another_round_comes_about(daemon, ctl, verb):
    told = {"cycle": cycle()["id"], "student": "5" * 64, "from_round": 3, "has_ended": True}
    daemon.results[verb] = told
    given = ("python/2",) if verb == "model.promote" else ()
    ran = ctl(*verb.split("."), *given, "--yes")
    assert ran.out.endswith("a round more: jupiterctl cycle extend c0ffee00 --rounds 1\n")
    daemon.results[verb] = told | {"has_ended": False}
    assert "extend" not in ctl(*verb.split("."), *given, "--yes").out


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            ("model", "promote", "python/2"),
            "student 55555555 is its cycle's promoted model; nothing is generated with it",
        ),
        (("cycle", "rollback"), "student 55555555 is promoted no more"),
    ],
)
def test_where_nothing_is_generated_no_round_and_no_prompts_are_spoken_of(
    daemon, ctl, command, line
):
    told = {"cycle": cycle()["id"], "student": "5" * 64, "from_round": 3}
    daemon.results[".".join(command[:2])] = told | {"has_ended": True, "generates": False}
    assert ctl(*command, "--yes").out == f"{line}\n"


def test_a_rollback_says_what_is_promoted_now(daemon, ctl):
    told = {"student": "5" * 64, "from_round": 3, "generates": False, "promoted": "small-llama"}
    daemon.results["cycle.rollback"] = told
    line = "student 55555555 is promoted no more: promoted means small-llama now\n"
    assert ctl("cycle", "rollback", "--yes").out == line


@pytest.mark.parametrize("verb", ["stop", "pause", "resume", "extend", "dismiss"])
def test_the_help_of_what_is_seldom_used_is_as_people_read_it(ctl, golden, verb):
    golden(f"cycle_{verb}_help.txt", ctl("cycle", verb, "--help").out)


@pytest.mark.parametrize(("given", "sent"), [((), {}), (("c0ffee",), {"cycle": "c0ffee"})])
def test_stop_asks_nothing_without_a_terminal_and_says_what_goes_on(daemon, ctl, given, sent):
    daemon.results["cycle.stop"] = {"cycle": cycle()["id"]}
    ran = ctl("cycle", "stop", *given)
    assert ran.exit_code == 0
    assert ran.out.splitlines()[-1] == "go on with it: jupiterctl cycle resume c0ffee00"
    assert daemon.executed == [("cycle.stop", sent)]


@pytest.mark.parametrize(("given", "sent"), [((), {}), (("c0ffee",), {"cycle": "c0ffee"})])
def test_pause_says_what_goes_on_with_the_cycle(daemon, ctl, given, sent):
    daemon.results["cycle.pause"] = {"schema": "jupiter/v1", "cycle": cycle()["id"]}
    ran = ctl("cycle", "pause", *given)
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out == (
        "cycle c0ffee00 is paused\ngo on with it: jupiterctl cycle resume c0ffee00\n"
    )
    assert daemon.executed == [("cycle.pause", sent)]
