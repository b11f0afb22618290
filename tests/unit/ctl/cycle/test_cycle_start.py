"""Planning and starting a cycle: what reaches the daemon, and what is refused before."""

import json

import pytest

from jupiterd.ctl.preflight import cycle_preflight
from jupiterd.ctl.sources.domain_files import shipped_domains
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.holdout.verdict_forecast import verdict_forecast
from jupiterd.errors import ConflictError
from tests.support.ctl.model_folder import write_folder
from tests.support.ctl.surveys import ENOUGH, FAR, TWELVE

PYTHON = parse_domain(shipped_domains()["python"].read_text(), "python.yaml")
HELD_OUT_SHARE = verdict_forecast(ENOUGH.counts, PYTHON.holdout_rules()).held_out_share
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


def test_an_adapter_of_a_cycle_has_a_quantized_base(daemon, ctl):
    assert ctl(*START, "--lora", "rank=8", "--quantize", "4bit").exit_code == 0
    assert daemon.executed[0][1]["training"] == {"lora": "rank=8", "quantize": "4bit"}


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
    base = write_folder(tmp_path / "base", "config.json", "model.safetensors")
    ran = ctl(*START, "--init", str(base))
    assert (ran.exit_code, "it lacks tokenizer.json" in ran.err) == (2, True)
    assert "hint: --init scratch" in ran.err
    assert daemon.executed == []


def test_a_domain_s_base_model_is_named_unless_the_command_says_another(daemon, ctl, tmp_path):
    base = write_folder(tmp_path / "base", "config.json", "tokenizer.json", "model.safetensors")
    file = tmp_path / "based.yaml"
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
    base = write_folder(tmp_path / "base", "config.json", "tokenizer.json", "model.safetensors")
    file = tmp_path / "based.yaml"
    text = shipped_domains()["python"].read_text().replace("domain: python", "domain: based")
    file.write_text(f"{text}init: {base}\n")
    here = ctl("cycle", "plan", "--domain", str(file), "--verbose")
    assert f"round 1 begins with {base}\n" in here.out, here.err
    drawn = ctl("cycle", "plan", "--domain", str(file), "--init", "scratch", "--verbose")
    assert "begins with" not in drawn.out
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "empty"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    elsewhere = ctl("cycle", "plan", "--domain", str(file), "--init", "some/model-1b", "--verbose")
    assert (
        "some/model-1b, which cycle start fetches: what is predicted here is for a" in elsewhere.out
    )
    title, *_ = elsewhere.out.splitlines()
    assert "some/model-1b (out of reach: what follows is of a model of size " in title
    told = [arguments for _, arguments in daemon.executed]
    assert told[0]["init"]["weights_folder"] == str(base)
    assert ["init" in each for each in told[1:]] == [False, False]
    assert [each["begins_with"] for each in told[1:]] == ["scratch", "some/model-1b"]


def test_without_a_daemon_no_source_is_looked_at(ctl, monkeypatch):
    surveyed = []
    monkeypatch.setattr(cycle_preflight, "survey_of", lambda *asked: surveyed.append(asked))
    for verb in ("start", "plan"):
        ran = ctl("cycle", verb, "--domain", "python", "--size", "1m")
        assert "no jupiterd answers" in ran.err
    assert surveyed == []


def test_the_domains_own_questions_go_with_a_start_and_are_checked_before(daemon, ctl, tmp_path):
    text = shipped_domains()["python"].read_text().replace("domain: python", "domain: own")
    asks = text.replace("evaluation:", "evaluation:\n  questions: own.jsonl")
    (tmp_path / "own.yaml").write_text(asks)
    start = ("cycle", "start", "--domain", str(tmp_path / "own.yaml"))
    refused = ctl(*start, "--dry-run")
    assert (refused.exit_code, daemon.executed) == (2, [])
    assert "evaluation.questions: there is no file" in refused.err
    question = '{"question": "Who wrote it?", "answer": "Ada"}\n'
    (tmp_path / "own.jsonl").write_text(question)
    assert ctl(*start).exit_code == 0
    assert daemon.executed[-1][1]["questions_text"] == question
    (tmp_path / "own.jsonl").write_text(f"{question}{{}}\n")
    bad = ctl("domain", "lint", str(tmp_path / "own.yaml"), "--offline")
    assert bad.exit_code != 0
    assert "evaluation.questions: line 2 of own.jsonl: its question is missing" in bad.out
