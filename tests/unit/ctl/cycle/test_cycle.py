"""Following a cycle, and its status, as people and scripts read them."""

import json

import pytest

from tests.support.ctl.documents import FAILED, FINISHED, PAUSED, STATUS, cycle, phase

START = ("cycle", "start", "--domain", "python", "--rounds", "2", "--size", "1m")
DROPPED = {
    "round": 1, "phase": "filter", "dropped": 188, "in": 200,
    "reasons": {"few-letters": 180, "symbols": 6},
    "told": "filter dropped 188 of 200 texts (94 %): few-letters 180, symbols 6",
}  # fmt: skip
ATTENTION = [
    "attention: round 1 filter dropped 188 of 200 texts (94 %): few-letters 180, symbols 6",
    "hint: jupiterctl data samples --dropped c0ffee00",
]


def test_waiting_shows_each_phase_and_ends_with_the_three_lines(daemon, ctl, golden):
    for document in (cycle(), FINISHED):
        daemon.watched.put(document)
    ran = ctl(*START, "--wait")
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.splitlines()[-3:] == [
        "verdict: PROMOTE",
        "val_bpb: 2.4012",
        "model: /state/runs/c0/m",
    ]
    golden("cycle_wait.txt", ran.out)


def test_waiting_ignores_the_cycle_before(daemon, ctl):
    for document in (FAILED | {"id": "0" * 16}, cycle(), FINISHED):
        daemon.watched.put(document)
    assert ctl(*START, "--wait").exit_code == 0


def test_waiting_for_a_cycle_that_fails_exits_with_1_and_says_why(daemon, ctl):
    daemon.watched.put(FAILED)
    ran = ctl(*START, "--wait")
    assert ran.exit_code == 1
    assert ran.err == (
        "jupiterctl: error: the cycle failed: no room on beta\n\nhint: free some space\n"
    )


@pytest.mark.parametrize(("more", "status"), [((), 1), (("--accept-worse",), 0)])
def test_a_student_that_ended_worse_than_it_began_ends_the_wait_with_1_unless_that_is_accepted(
    daemon, ctl, more, status
):
    scores = {"bits_per_byte_before": 1.109, "bits_per_byte": 4.67, "best_bits_per_byte": 1.109}
    daemon.watched.put(FINISHED | scores | {"best_step": 0, "ended_worse": True})
    ran = ctl(*START, "--wait", *more)
    assert ran.exit_code == status
    assert "it ended worse than it began, at 4.6700" in ran.out
    assert ("ended worse than it began" in ran.err) == bool(status)


def test_status_says_why_a_cycle_failed_and_what_to_do(daemon, ctl):
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": FAILED}
    _, why, hint, *_ = ctl("cycle", "status").out.splitlines()
    assert (why, hint) == ("failed: no room on beta", "hint: free some space")


def test_ctrl_c_ends_the_waiting_and_says_that_the_cycle_goes_on(daemon, ctl, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jupiterd.ctl.waiting.follow.next_lines", interrupt)
    daemon.watched.put(cycle())
    ran = ctl(*START, "--wait")
    assert ran.exit_code == 130
    assert ran.err.strip() == (
        "jupiterctl: the work goes on; follow it with: jupiterctl cycle watch; "
        "jupiterctl cycle stop ends it"
    )


def test_waiting_for_a_cycle_that_is_stopped_exits_with_1(daemon, ctl):
    daemon.watched.put(cycle("stopped"))
    ran = ctl(*START, "--wait")
    assert ran.exit_code == 1
    assert "was stopped" in ran.err


def test_waiting_too_long_exits_with_4(daemon, ctl):
    daemon.watched.put(cycle())
    ran = ctl(*START, "--wait", "--timeout", "0.3s")
    assert ran.exit_code == 4
    assert "within 0.3 s" in ran.err
    assert "cycle watch" in ran.err


def test_a_time_limit_without_waiting_is_a_mistake(daemon, ctl):
    ran = ctl(*START, "--timeout", "5")
    assert ran.exit_code == 2
    assert daemon.executed == []


def test_waiting_with_json_prints_the_last_document_alone(daemon, ctl):
    for document in (cycle(), FINISHED):
        daemon.watched.put(document)
    ran = ctl(*START, "--wait", "-o", "json")
    assert json.loads(ran.out) == {"schema": "jupiter/v1", "cycle": FINISHED}


def test_watching_with_jsonl_prints_each_document(daemon, ctl):
    for document in (cycle(), FINISHED):
        daemon.watched.put(document)
    lines = ctl("cycle", "watch", "-o", "jsonl").out.splitlines()
    assert json.loads(lines[-1])["cycle"] == FINISHED
    assert {json.loads(line)["cycle"]["state"] for line in lines} == {"running", "finished"}


def test_watching_without_a_cycle_is_not_found(daemon, ctl):
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": None}
    ran = ctl("cycle", "watch")
    assert ran.exit_code == 6
    assert "cycle start" in ran.err


def test_status_names_the_sources_that_failed_in_the_newest_round(daemon, ctl):
    lost = {"round": 2, "told": "source docs failed: no way\x1b[2J; the next round tries it anew"}
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": cycle(lost_sources=[lost])}
    _, line, *_ = ctl("cycle", "status").out.splitlines()
    assert line.startswith("round 2 collect   source docs failed: no way")
    assert "\x1b" not in line


def test_status_of_running_finished_and_absent_cycles(daemon, ctl, golden):
    golden("cycle_status_running.txt", ctl("cycle", "status").out)
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": FINISHED}
    golden("cycle_status_finished.txt", ctl("cycle", "status").out)
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": None}
    assert ctl("cycle", "status").out == "no cycle has been started\n"


def test_status_for_scripts_is_the_document_of_the_daemon(daemon, ctl):
    assert json.loads(ctl("cycle", "status", "-o", "json").out) == daemon.documents["cycle"]


def test_a_failed_cycle_says_what_goes_on_with_it(daemon, ctl):
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": FAILED}
    lines = ctl("cycle", "status").out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("failed: "))
    assert lines[at + 2] == "then it goes on from where it is: jupiterctl cycle resume c0ffee00"


def test_one_with_too_little_text_reads_anew_before_it_goes_on(daemon, ctl):
    failure = {"code": "too-little-text", "message": "17 documents", "hint": "add text"}
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": FAILED | {"failure": failure}}
    assert "jupiterctl cycle resume c0ffee00 --redo collect" in ctl("cycle", "status").out


def test_any_cycle_has_a_status(daemon, ctl):
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": cycle("running")}
    failed = cycle("failed", domain="cooking")
    daemon.documents["cycle/cooking"] = {"schema": "jupiter/v1", "cycle": failed}
    assert "cooking (c0ffee00): failed" in ctl("cycle", "status", "cooking").out
    assert "cooking" not in ctl("cycle", "status").out


def test_what_a_phase_dropped_is_told_in_every_status(daemon, ctl):
    told = cycle("running", heavy_drops=[DROPPED])
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": told}
    daemon.documents["status"] = {**STATUS, "cycle": told}
    for asked in (("cycle", "status"), ("status",)):
        lines = [line.strip() for line in ctl(*asked).out.splitlines()]
        at = lines.index(ATTENTION[0])
        assert lines[at : at + 2] == ATTENTION
    alarm = {"code": "mostly-dropped", "severity": "warning", "title": DROPPED["told"], "hint": ""}
    daemon.documents["status"] |= {"health": [alarm]}
    assert ctl("status").out.count(DROPPED["told"]) == 1, "once is enough"


@pytest.mark.parametrize(("ended", "further"), [(FINISHED, 4), (FAILED, 0)])
def test_what_a_phase_dropped_is_told_where_waiting_ends(daemon, ctl, ended, further):
    daemon.watched.put(ended | {"heavy_drops": [DROPPED]})
    lines = ctl("cycle", "watch").out.splitlines()
    assert lines[len(lines) - further - 2 : len(lines) - further] == ATTENTION


def test_status_says_after_which_phase_a_cycle_waits(daemon, ctl):
    reason = "waiting for your answer after filter of round 1"
    waiting = PAUSED | {"paused": PAUSED["paused"] | {"asks": True, "reason": reason}}
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": waiting}
    assert f"{reason} at 2026-01-02" in ctl("cycle", "status").out


def test_status_and_watch_say_who_paused_a_cycle_and_what_goes_on_with_it(daemon, ctl):
    told = "paused by alpha? at 2026-01-02T03:04:05+00:00; go on with: jupiterctl cycle resume c0"
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": PAUSED}
    daemon.documents["status"] = STATUS | {"cycle": PAUSED}
    assert told in ctl("cycle", "status").out.splitlines()[1]
    assert any(told in line for line in ctl("status").out.splitlines())
    for document in (PAUSED, PAUSED, cycle(), FINISHED):
        daemon.watched.put(document)
    ran = ctl("cycle", "watch")
    assert ran.exit_code == 0
    assert ran.out.count("paused by") == 1


def test_all_cycles_are_listed_with_where_they_stand(daemon, ctl, golden):
    row = {"domain": "python", "rounds": 2, "rounds_done": 1, "verdict": "HOLD", "val_bpb": 2.5}
    rows = [
        {**row, "id": "c0ffee0000000001", "state": "paused", "self_hosting": 0.43},
        {**row, "id": "d" * 16, "state": "stopped", "rounds_done": 0, "verdict": None,
         "val_bpb": None, "self_hosting": None, "domain": "odd\x1b[2J"},
    ]  # fmt: skip
    daemon.documents["cycles"] = {"schema": "jupiter/v1", "cycles": rows}
    golden("cycle_list.txt", ctl("cycle", "list").out)
    assert json.loads(ctl("cycle", "list", "-o", "json").out) == daemon.documents["cycles"]
    lines = ctl("cycle", "list", "-o", "jsonl").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [row["id"] for row in rows]
    daemon.documents["cycles"] = {"schema": "jupiter/v1", "cycles": []}
    assert ctl("cycle", "list").out == "no cycle has been started\n"


def test_status_shows_what_each_phase_took_in_gave_out_and_dropped(daemon, ctl, golden):
    rows = [
        phase(1, "filter", "done", **{"in": 900, "out": 700, "rate": 57.5},
              dropped={"duplicate": 120, "no-parse\x1b": 50, "a": 20, "b": 9, "c": 1}),
        phase(1, "train", "running", **{"in": 463}, done=120, total=600, unit="steps", rate=6.0,
              eta_s=80.0),
        phase(1, "evaluate", "waiting"),
    ]  # fmt: skip
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": cycle(phases=rows, events=[])}
    golden("cycle_status_phases.txt", ctl("cycle", "status").out)


def test_what_an_older_daemon_tells_of_infinity_is_null_for_scripts(daemon, ctl):
    odd = FINISHED | {"val_bpb": float("inf"), "verdicts": [{"round": 1, "val_bpb": float("nan")}]}
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": odd}
    for form in ("json", "jsonl"):
        shown = ctl("cycle", "status", "-o", form).out
        assert "Infinity" not in shown
        assert json.loads(shown)["cycle"]["val_bpb"] is None
        assert json.loads(shown)["cycle"]["verdicts"][0]["val_bpb"] is None
