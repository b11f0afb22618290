"""A real cycle on three daemons, started and followed as a user would."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from tests.support.daemons.cluster import Cluster, Document, three_daemons
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.smoke,
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

KEYS = {
    "id", "domain", "state", "round", "phase", "step", "total_steps", "tokens", "loss", "val_bpb",
    "tokens_per_s", "epoch", "resumed_from_step", "gang", "verdicts", "model",
}  # fmt: skip
VERDICTS = ("PROMOTE", "HOLD", "REJECT", "ABSTAIN")

QUESTIONS = (
    '{"question": "What does a queue hold?", "answer": "tickets"}\n'
    '{"question": "def count_", "choices": ["order", "zzzzz"], "answer": "order"}\n'
)

SEQ_LEN = 64
STATE_FILE = "training_state/state.json"

LOAD = """
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
for folder in sys.argv[1:]:
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokens = AutoTokenizer.from_pretrained(folder)("def count", return_tensors="pt")
    print(bool(torch.isfinite(model(tokens["input_ids"]).logits).all()))
"""


async def test_two_rounds_end_with_a_model_that_every_node_has(tmp_path: Path) -> None:
    domain = write_domain(tmp_path, steps=60, proxies="auto", dev=0.2, questions=QUESTIONS)
    async with three_daemons(tmp_path) as cluster:
        await cluster.meet()
        done = cluster.ctl(
            *("cycle", "start", "--domain", str(domain), "--rounds", "2", "--seed", "7", "--wait"),
            timeout_s=240,
        )
        assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
        verdict, val_bpb, model = done.stdout.splitlines()[-3:]
        assert verdict.partition(": ")[0] == "verdict"
        assert verdict.partition(": ")[2] in VERDICTS
        assert float(val_bpb.removeprefix("val_bpb: ")) > 0
        await _is_told_alike_by_every_daemon(cluster)
        _shows_why_there_is_generated_text_or_none(cluster)
        _is_in_two_copies(cluster)
        _goes_on_with_the_trunk(cluster)
        _comes_to_the_same_verdicts_everywhere(cluster)
        _has_answers_to_the_same_prompts_beside_each_verdict(cluster)
        _tells_of_the_domains_own_questions_anywhere(cluster)
        _shows_how_text_teaches(cluster)
        _can_be_taken_elsewhere(cluster, tmp_path)
        assert _load_in_transformers(model.removeprefix("model: "), str(tmp_path / "taken"))


def _is_over(cycle: Document) -> bool:
    """Say whether a daemon has heard of the last round's end, and has its model."""
    return str(cycle["model"]).endswith("round-2") and cycle["phase"] is None


async def _is_told_alike_by_every_daemon(cluster: Cluster) -> None:
    told = []
    for daemon in cluster.daemons:
        await cluster.until(_is_over, "the model", 30, daemon)
        printed = cluster.ctl("cycle", "status", "-o", "json", daemon=daemon)
        assert printed.returncode == 0, printed.stderr
        cycle = json.loads(printed.stdout)["cycle"]
        assert cycle.keys() >= KEYS
        assert Path(cycle["model"]).is_relative_to(daemon.state_dir)
        assert (Path(cycle["model"]) / "config.json").is_file()
        told.append({key: value for key, value in cycle.items() if key != "model"})
    assert told[0] == told[1] == told[2]
    assert told[0]["state"] == "finished"
    assert [found["round"] for found in told[0]["verdicts"]] == [1, 2]


def _shows_why_there_is_generated_text_or_none(cluster: Cluster) -> None:
    cycle = json.loads(cluster.ctl("cycle", "status", "-o", "json").stdout)["cycle"]
    first, second = (phase for phase in cycle["phases"] if phase["phase"] == "generate")
    assert (first["state"], first["detail"]) == ("skipped", "round 1 trains on real data alone")
    if cycle["verdicts"][0]["verdict"] == "PROMOTE":
        assert second["state"] == "done"
        assert second["unit"] == "samples"
        assert second["done"] > 0
    else:
        assert second["state"] == "skipped"
        assert "no generator was promoted" in second["detail"]


def _comes_to_the_same_verdicts_everywhere(cluster: Cluster) -> None:
    for daemon, chosen in zip(cluster.daemons, ((), ("--candidate", "1"), ()), strict=True):
        again = cluster.ctl("gate", "run", *chosen, "-o", "json", daemon=daemon)
        assert again.returncode == 0, again.stderr
        found = json.loads(again.stdout)["gate"]
        assert (found["is_same"], found["round"]) == (True, 1 if chosen else 2)
        assert found["numbers"]["sanity"]["completions"] > 0
        assert found["numbers"]["cloze"]["items"] > 0
        explained = cluster.ctl("cycle", "explain", str(found["round"]), daemon=daemon)
        assert explained.stdout.startswith(f"Round {found['round']}: {found['verdict']}. ")
        assert "What the models write to the same held-out text" in explained.stdout


def _has_answers_to_the_same_prompts_beside_each_verdict(cluster: Cluster) -> None:
    first, second = (
        json.loads(cluster.ctl("cycle", "explain", number, "-o", "json").stdout)
        for number in ("1", "2")
    )
    for told in (first, second):
        answers = told["answers"]
        assert answers["trouble"] is None
        assert answers["models"]["candidate"] == told["given"]["candidate"]
        assert answers["models"]["incumbent"] == (told["given"]["incumbent"] or None)
        assert any(row["candidate"] for row in answers["rows"])
    prompts = [[row["prompt"] for row in each["answers"]["rows"]] for each in (first, second)]
    assert prompts[0] == prompts[1]
    if second["given"]["incumbent"] == first["given"]["candidate"]:
        kept = [row["incumbent"] for row in second["answers"]["rows"]]
        assert kept == [row["candidate"] for row in first["answers"]["rows"]]


def _can_be_taken_elsewhere(cluster: Cluster, folder: Path) -> None:
    listed = json.loads(cluster.ctl("model", "list", "-o", "json").stdout)["models"]
    assert [model["name"] for model in listed] == ["tiny/2", "tiny/1"]
    shown = cluster.ctl("model", "show", "tiny/1", "-o", "json", daemon=cluster[2])
    assert len(json.loads(shown.stdout)["model"]["completions"]) > 0
    done = cluster.ctl("model", "export", "tiny/2", "--to", str(folder / "taken"))
    assert done.returncode == 0, done.stderr
    card = (folder / "taken" / "README.md").read_text()
    assert "| MIT |" in card
    assert f"{listed[0]['val_bpb']:.4f} bits per byte" in card
    reported = cluster.ctl("cycle", "report", "--to", str(folder / "r.html"), daemon=cluster[1])
    assert reported.returncode == 0, reported.stderr
    page = (folder / "r.html").read_text()
    assert page.count("<svg") >= 2
    assert "<table" in page.split("Side by side")[1].split("</section>")[0]
    tables = {(daemon.state_dir / "cycles.tsv").read_text() for daemon in cluster.daemons}
    assert len(tables) == 1
    rows = [line.split("\t") for line in tables.pop().splitlines()[1:]]
    assert [(row[3], row[-1]) for row in rows] == [("1", listed[1]["id"]), ("2", listed[0]["id"])]


def _tells_of_the_domains_own_questions_anywhere(cluster: Cluster) -> None:
    counted: list[Document] = []
    for daemon in cluster.daemons:
        told = cluster.ctl("cycle", "explain", "2", "-o", "json", daemon=daemon)
        counted.append(json.loads(told.stdout)["own_questions"]["models"])
    assert counted[0] == counted[1] == counted[2]
    assert {each["questions"] for each in counted[0].values()} == {2}
    _comes_to_as_many_when_it_is_asked_again(cluster, counted[0])


def _comes_to_as_many_when_it_is_asked_again(cluster: Cluster, counted: Document) -> None:
    asked = cluster.ctl(
        *("model", "eval", "tiny/2", "--tasks", "own", "-o", "json"),
        daemon=cluster.daemons[-1],
        timeout_s=120,
    )
    assert asked.returncode == 0, asked.stderr
    (model,) = json.loads(asked.stdout)["eval"]["models"]
    assert counted[model["id"]]["right"] == model["right"]


def _shows_how_text_teaches(cluster: Cluster) -> None:
    """Small students were trained where all else spoke for a candidate, and beside a mix."""
    for number in (1, 2):
        shown = cluster.ctl("gate", "run", "--candidate", str(number), "-o", "json").stdout
        numbers = json.loads(shown)["gate"]["numbers"]
        outcome = [numbers["questions"][f"G{each}"]["outcome"] for each in range(4)]
        if outcome[:3] == ["passed"] * 3:
            teaches = numbers["questions"]["G3"]
            too_little = "show nothing but chance" in teaches["reason"]
            assert outcome[3] == "not run" if too_little else outcome[3] in ("passed", "failed")
        else:
            assert outcome[3] == "not asked"
        if numbers["teaching"] is not None:
            assert len(numbers["teaching"]["seeds"]) == 2
        phases = json.loads(cluster.ctl("cycle", "status", "-o", "json").stdout)["cycle"]["phases"]
        packed = next(p for p in phases if (p["round"], p["phase"]) == (number, "pack"))
        if " 0 of them synthetic" in packed["detail"]:
            assert numbers["control"] is None


def _is_in_two_copies(cluster: Cluster) -> None:
    cycle = next(iter(cluster[0].state().cycles.values()))
    copies = Counter(
        {name: sum(daemon.holds(name) for daemon in cluster.daemons) for name in _artifacts(cycle)}
    )
    assert len(copies) > 10
    assert {name: number for name, number in copies.items() if number < 2} == {}


def _goes_on_with_the_trunk(cluster: Cluster) -> None:
    """Round 2 begins where round 1's rate began to fall, with the moments there, and says so."""
    cycle = next(iter(cluster[0].state().cycles.values()))
    line = [fact for fact in cycle.canonical_branch() if isinstance(fact, CheckpointCommitted)]
    ended, candidate = [fact for fact in line if fact.round == 1][-2:]
    opened = next(fact for fact in cycle.attempts_opened.values() if fact.round == 2)
    assert ended.on_trunk
    assert not candidate.on_trunk
    assert (opened.from_checkpoint, opened.follows) == (ended.artifact, candidate.artifact)
    begun = next(fact for fact in line if fact.round == 2)
    assert begun.tokens - ended.tokens == begun.cursor * SEQ_LEN
    holder = next(daemon for daemon in cluster.daemons if daemon.holds(begun.artifact))
    folder = holder.state_dir / "store" / begun.artifact[:2] / begun.artifact
    state = json.loads((folder / "files" / STATE_FILE).read_text())
    assert state["steps_before"] == ended.step, "the optimizer counts on"
    assert begun.loss < ended.loss + 0.1, "and the loss doesn't jump"
    audited = json.loads(cluster.ctl("data", "audit", "-o", "json").stdout)["audit"][0]
    assert audited["ok"], audited
    assert [part["trunk_cursor"] for part in audited["rounds"]] == [ended.cursor, ended.cursor]
    assert audited["rounds"][1]["began_with_tokens"] == ended.tokens


def _artifacts(cycle: CycleState) -> set[str]:
    """Return every artifact that the cycle's facts name."""
    return {
        *(name for done in cycle.completed.values() for name in done.outputs.values()),
        *(
            fact.artifact
            for fact in cycle.canonical_branch()
            if isinstance(fact, CheckpointCommitted)
        ),
        *(verdict.artifact for verdict in cycle.verdicts.values()),
        *(manifest.tokenizer for manifest in cycle.manifests.values()),
        *(shard for manifest in cycle.manifests.values() for shard in manifest.shards),
    }


def _load_in_transformers(*folders: str) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *folders],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split() == ["True"] * len(folders)
