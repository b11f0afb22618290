import json

import pytest

from jupiterd.ctl.domain_files import shipped_domains
from jupiterd.cycle.data.holdout_outlook import holdout_outlook
from jupiterd.cycle.domain import parse_domain
from jupiterd.errors import ConflictError
from tests.unit.ctl.documents import FAILED, FINISHED, PAUSED, STATUS, cycle, phase
from tests.unit.ctl.surveys import ENOUGH, FAR, TWELVE

PYTHON = parse_domain(shipped_domains()["python"].read_text(), "python.yaml")
HELD_OUT_SHARE = holdout_outlook(ENOUGH.counts, PYTHON.holdout_rules()).held_out_share

START = ("cycle", "start", "--domain", "python", "--rounds", "2", "--size", "1m")


def test_start_sends_the_text_of_the_domain_and_returns_at_once(daemon, ctl):
    ran = ctl(*START, "--seed", "7")
    assert (ran.exit_code, ran.err) == (0, "")
    first, *lines, last = ran.out.splitlines()
    assert first == "cycle c0ffee00 started: python, 2 rounds, size 1m"
    assert last == "follow it with: jupiterctl cycle watch"
    assert len([first, *lines]) <= 12
    verb, arguments = daemon.executed[0]
    assert verb == "cycle.start"
    assert arguments == {
        "domain_name": "python",
        "domain_yaml": shipped_domains()["python"].read_text(),
        "rounds": 2,
        "size": "1m",
        "seed": 7,
        "tokens": round(ENOUGH.counts.tokens * (1 - HELD_OUT_SHARE)),
    }


def test_an_engine_is_sent_where_one_is_named_for_else_a_cluster_file_may_name_it(daemon, ctl):
    for name in ("auto", "mlx"):
        ctl(*START, "--engine", name)
    assert [arguments["engine"] for _, arguments in daemon.executed] == ["auto", "mlx"]


def test_the_options_of_a_run_are_there_for_a_cycle(daemon, ctl):
    said = "--nodes a,b --precision bf16 --optimizer muon --lr 0.001 --batch-size 4 --seq-len 512"
    more = "--gradient-checkpointing on --attention sdpa --max-steps 300"
    assert ctl(*START, *said.split(), *more.split()).exit_code == 0
    arguments = daemon.executed[0][1]
    assert arguments["nodes"] == "a,b"
    assert arguments["training"] == {
        "precision": "bf16", "optimizer": "muon", "learning_rate": 0.001, "batch_size": 4,
        "seq_len": 512, "gradient_checkpointing": "on", "attention": "sdpa",
        "max_steps": 300,
    }  # fmt: skip


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_too_little_text_is_refused_before_the_daemon_hears_of_it(daemon, ctl, looked, more):
    looked(TWELVE)
    ran = ctl(*START, *more)
    assert (ran.exit_code, daemon.executed) == (5, [])
    assert "12 documents, about 15,000 tokens; a verdict needs at least " in ran.err
    assert "add text, or start with --without-verdict" in ran.err
    assert ctl("domain", "lint", "python").exit_code == 5
    assert "verdict   no: 12 documents" in ctl("cycle", "plan", "--domain", "python").out


def test_it_starts_all_the_same_where_people_say_so(daemon, ctl, looked):
    looked(TWELVE)
    ran = ctl(*START, "--without-verdict")
    assert ran.exit_code == 0
    assert "verdict   none, as asked: too little text" in ran.out
    assert daemon.executed[0][1]["without_verdict"] is True
    assert ctl(*START, "--without-verdict", "--dry-run").exit_code == 0


def test_what_was_not_counted_may_bring_what_is_missing(daemon, ctl, looked):
    looked(FAR)
    ran = ctl(*START)
    assert ran.exit_code == 0
    assert "verdict   not with what was counted: 12 documents" in ran.out
    assert "without_verdict" not in daemon.executed[0][1]
    assert ctl("domain", "lint", "python").exit_code == 0


def test_without_a_seed_the_daemon_draws_one(daemon, ctl):
    ctl(*START)
    assert "seed" not in daemon.executed[0][1]


def test_start_for_scripts_prints_the_answer_of_the_daemon(daemon, ctl):
    document = json.loads(ctl(*START, "-o", "json").out)
    assert document == {"schema": "jupiter/v1", "cycle": "c0ffee0000000001"}


def test_a_broken_domain_file_never_reaches_the_daemon(daemon, ctl, tmp_path):
    file = tmp_path / "odd.yaml"
    file.write_text("version: 1\n")
    ran = ctl("cycle", "start", "--domain", str(file))
    assert ran.exit_code == 2
    assert str(file) in ran.err
    assert daemon.executed == []


def test_an_unknown_domain_never_reaches_the_daemon(daemon, ctl):
    ran = ctl("cycle", "start", "--domain", "pyhton")
    assert ran.exit_code == 6
    assert daemon.executed == []


def test_a_running_cycle_is_a_conflict(daemon, ctl):
    daemon.failure = ConflictError("a cycle is running")
    assert ctl(*START).exit_code == 7


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


@pytest.mark.parametrize("verb", ["start", "plan"])
def test_a_folder_that_is_not_here_is_named_before_the_cycle_misses_it(
    daemon, ctl, verb, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    ctl("domain", "new", "my_field")
    told = "source my_field (folder, ~/my_field): there is no such folder on this machine"
    assert told in ctl("cycle", verb, "--domain", "my_field").err
    (tmp_path / "my_field").mkdir()
    (tmp_path / "my_field" / "text.md").write_text("words")
    assert told not in ctl("cycle", verb, "--domain", "my_field").err


def test_status_says_why_a_cycle_failed_and_what_to_do(daemon, ctl):
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": FAILED}
    _, why, hint, *_ = ctl("cycle", "status").out.splitlines()
    assert (why, hint) == ("failed: no room on beta", "hint: free some space")


def test_ctrl_c_ends_the_waiting_and_says_that_the_cycle_goes_on(daemon, ctl, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jupiterd.ctl.follow.next_lines", interrupt)
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


@pytest.mark.parametrize("verb", ["cycle.rollback", "model.promote"])
def test_of_a_cycle_that_has_ended_it_is_told_how_another_round_comes_about(daemon, ctl, verb):
    told = {"cycle": cycle()["id"], "student": "5" * 64, "from_round": 3, "has_ended": True}
    daemon.results[verb] = told
    given = ("python/2",) if verb == "model.promote" else ()
    ran = ctl(*verb.split("."), *given, "--yes")
    assert ran.out.endswith("a round more: jupiterctl cycle extend c0ffee00 --rounds 1\n")
    daemon.results[verb] = told | {"has_ended": False}
    assert "extend" not in ctl(*verb.split("."), *given, "--yes").out


DROPPED = {
    "round": 1, "phase": "filter", "dropped": 188, "in": 200,
    "reasons": {"few-letters": 180, "symbols": 6},
    "told": "filter dropped 188 of 200 texts (94 %): few-letters 180, symbols 6",
}  # fmt: skip
ATTENTION = [
    "attention: round 1 filter dropped 188 of 200 texts (94 %): few-letters 180, symbols 6",
    "hint: jupiterctl data samples --dropped c0ffee00",
]


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


@pytest.mark.parametrize(("ended", "further"), [(FINISHED, 3), (FAILED, 0)])
def test_what_a_phase_dropped_is_told_where_waiting_ends(daemon, ctl, ended, further):
    daemon.watched.put(ended | {"heavy_drops": [DROPPED]})
    lines = ctl("cycle", "watch").out.splitlines()
    assert lines[len(lines) - further - 2 : len(lines) - further] == ATTENTION


def test_status_says_after_which_phase_a_cycle_waits(daemon, ctl):
    reason = "waiting for your answer after filter of round 1"
    waiting = PAUSED | {"paused": PAUSED["paused"] | {"asks": True, "reason": reason}}
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": waiting}
    assert f"{reason} at 2026-01-02" in ctl("cycle", "status").out


@pytest.mark.parametrize("verb", ["stop", "pause", "resume", "extend", "dismiss"])
def test_the_help_of_what_is_seldom_used_is_as_people_read_it(ctl, golden, verb):
    golden(f"cycle_{verb}_help.txt", ctl("cycle", verb, "--help").out)


@pytest.mark.parametrize(("given", "sent"), [((), {}), (("c0ffee",), {"cycle": "c0ffee"})])
def test_stop_asks_nothing_without_a_terminal(daemon, ctl, given, sent):
    assert ctl("cycle", "stop", *given).exit_code == 0
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


def test_a_plan_shows_what_each_source_may_take_and_starts_nothing(daemon, ctl, tmp_path, golden):
    daemon.results["cycle.plan"] = {
        "schema": "jupiter/v1",
        "domain": "plan",
        "rounds": 3,
        "sheet": ["Model 1m: d_model=128", "Expected 10,000 tokens/s, done in 8 min"],
        "expected": {
            "parameters": 1_400_000,
            "precision": "fp32",
            "optimizer": "adamw",
            "memory_bytes_per_device": 300_000_000,
            "device_memory_bytes": 8_000_000_000,
            "batch_sequences": 16,
            "tokens_per_s": 10_000.0,
        },
        "cost": {
            "first": {"steps": 780, "tokens": 800_000, "eta_s": 80.0},
            "later": {"steps": 460, "tokens": 470_000, "eta_s": 47.0},
            "eta_s": 174.0,
            "tokens": 1_740_000,
        },
        "layouts": {
            "chosen": {
                "title": "alpha alone on torch",
                "tokens_per_s": 10_000.0,
                "is_choosable": True,
                "why": "no other machine could take part",
            },
            "unasked": "alpha alone on torch",
            "alternatives": [],
        },
    }
    file = tmp_path / "plan.yaml"
    file.write_text(
        "version: 1\ndomain: plan\ntitle: A plan\nlanguage: en\nholdout: {salt: s}\n"
        "generation: {templates: [{kind: complete_function, samples: 20}], max_tokens: 64}\n"
        "data_sources:\n- {kind: folder, path: /texts, license: MIT}\n"
        "- {kind: web, urls: ['https://a.org/', 'https://b.org/'], max_pages: 9000}\n"
    )
    ran = ctl("cycle", "plan", "--domain", str(file), "--rounds", "3")
    assert ran.exit_code == 0
    golden("cycle_plan.txt", ran.out)
    assert len(ran.out.splitlines()) <= 12
    assert [verb for verb, _ in daemon.executed] == ["cycle.plan"]
    whole = ctl("cycle", "plan", "--domain", str(file), "--rounds", "3", "--verbose")
    golden("cycle_plan_verbose.txt", whole.out)
    plan = json.loads(ctl("cycle", "plan", "--domain", str(file), "-o", "json").out)["plan"]
    assert plan["sources"][1]["max_pages"] == 9000
    assert plan["generated_tokens"] == 20 * 64


def test_a_base_model_that_lacks_files_never_reaches_the_daemon(daemon, ctl, tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    for name in ("config.json", "model.safetensors"):
        (base / name).write_text("{}")
    ran = ctl(*START, "--init", str(base))
    assert (ran.exit_code, "it lacks tokenizer.json" in ran.err) == (2, True)
    assert "hint: --init scratch" in ran.err
    assert daemon.executed == []


def test_a_domain_s_base_model_is_named_unless_the_command_says_another(daemon, ctl, tmp_path):
    base, file = tmp_path / "base", tmp_path / "based.yaml"
    base.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (base / name).write_text("{}")
    text = shipped_domains()["python"].read_text().replace("domain: python", "domain: based")
    file.write_text(f"{text}init: {base}\n")
    ctl("cycle", "start", "--domain", str(file))
    ctl("cycle", "start", "--domain", str(file), "--init", "scratch")
    told, scratch = (arguments for _, arguments in daemon.executed)
    assert told["init"]["weights_folder"] == str(base)
    assert "init" not in scratch
    assert ("begins_with" in told, scratch["begins_with"]) == (False, "scratch")


def test_a_plan_looks_at_the_model_that_the_domain_begins_with_and_fetches_none(
    daemon, ctl, tmp_path, monkeypatch
):
    daemon.results["cycle.plan"] = {"schema": "jupiter/v1", "domain": "based", "rounds": 1}
    base, file = tmp_path / "base", tmp_path / "based.yaml"
    base.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (base / name).write_text("{}")
    text = shipped_domains()["python"].read_text().replace("domain: python", "domain: based")
    file.write_text(f"{text}init: {base}\n")
    here = ctl("cycle", "plan", "--domain", str(file), "--verbose")
    assert f"round 1 begins with {base}\n" in here.out, here.err
    drawn = ctl("cycle", "plan", "--domain", str(file), "--init", "scratch", "--verbose")
    assert "begins with" not in drawn.out
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
    elsewhere = ctl("cycle", "plan", "--domain", str(file), "--init", "some/model-1b", "--verbose")
    assert (
        "some/model-1b, which cycle start fetches: what is foretold here is of a" in elsewhere.out
    )
    told = [arguments for _, arguments in daemon.executed]
    assert told[0]["init"]["weights_folder"] == str(base)
    assert ["init" in each for each in told[1:]] == [False, False]
    assert [each["begins_with"] for each in told[1:]] == ["scratch", "some/model-1b"]


def test_what_an_older_daemon_tells_of_infinity_is_null_for_scripts(daemon, ctl):
    odd = FINISHED | {"val_bpb": float("inf"), "verdicts": [{"round": 1, "val_bpb": float("nan")}]}
    daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": odd}
    for form in ("json", "jsonl"):
        shown = ctl("cycle", "status", "-o", form).out
        assert "Infinity" not in shown
        assert json.loads(shown)["cycle"]["val_bpb"] is None
        assert json.loads(shown)["cycle"]["verdicts"][0]["val_bpb"] is None
