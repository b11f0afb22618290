"""A cycle that goes on with an adapter that peft wrote, and that adapter as a model beside it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from jupiterd.adapter_folder import base_named_in
from tests.e2e.cycle.test_adapter_cycle import write_tuned_base
from tests.e2e.cycle.test_promoted_model import done
from tests.e2e.training.test_given_adapter import assert_trained_on, of_peft
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, running
from tests.support.serving.served_command import served_command
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(500),
]

FEW = ("--lr", "1e-3", "--seq-len", "64", "--max-steps", "4", "--accept-worse")


async def test_a_round_goes_on_with_it_and_must_beat_both_together(tmp_path: Path) -> None:
    base = write_tuned_base(tmp_path / "made")
    theirs = of_peft(tmp_path / "theirs", base)
    domain = write_domain(tmp_path, steps=4, samples=0, batch=8)
    domain.write_text(domain.read_text().replace("vocab_size: 512, ", ""))
    named = tmp_path / "named.yaml"
    named.write_text(f"{domain.read_text()}init: {base}\nadapter: {theirs}\n")
    async with running([Daemon(tmp_path, name) for name in NAMES[:2]]) as cluster:
        await cluster.meet()
        await cluster.say_yes()
        await asyncio.to_thread(_is_a_model, cluster, base, theirs)
        await _is_served(cluster[0], theirs)
        looked = done(cluster, "cycle", "start", "--domain", str(named), *FEW, "--dry-run")
        assert "beside an adapter that was given of " in looked
        for how in (("--domain", str(domain), "--init", str(theirs)), ("--domain", str(named))):
            await asyncio.to_thread(done, cluster, "cycle", "start", *how, *FEW, "--wait")
            exported = tmp_path / f"out-{len(how)}"
            done(cluster, "model", "export", "tiny/1", "--to", str(exported))
            assert_trained_on(exported)
            await asyncio.to_thread(_is_judged_beside_it, cluster)


def _is_a_model(cluster: Cluster, base: Path, theirs: Path) -> None:
    """It answers by its folder, and is scored beside its base."""
    asked = ("The statement", "--max-tokens", "4", "--temperature", "0", "-o", "json")
    both = done(cluster, "model", "chat", str(theirs), *asked, "--beside", "base")
    answers = json.loads(both)["answers"]
    assert [each["completion_tokens"] for each in answers] == [4, 4]
    questions = theirs.parent / "questions.jsonl"
    questions.write_text('{"question": "def", "choices": ["a", "b"], "answer": 0}\n')
    scored = done(cluster, "model", "eval", str(theirs), "--tasks", str(questions), "-o", "json")
    assert "theirs" in scored
    refused = cluster.ctl("model", "chat", str(theirs), "--base", str(theirs), "hello")
    assert refused.returncode != 0
    assert "theirs is no model: it has no config.json" in refused.stderr
    assert "--base names the folder of a whole model" in refused.stderr


async def _is_served(daemon: Daemon, theirs: Path) -> None:
    """Clients call it by the last part of its path."""
    async with (
        served_command(daemon.state_dir, str(theirs)) as serving,
        httpx.AsyncClient(base_url=serving.url, timeout=60) as client,
    ):
        body = {"model": "theirs", "prompt": "def ", "max_tokens": 4, "temperature": 0}
        answer = await client.post("/completions", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"][0]["text"]


def _is_judged_beside_it(cluster: Cluster) -> None:
    told: Any = json.loads(done(cluster, "cycle", "explain", "1", "-o", "json"))
    cycles = cluster[0].state().cycles.values()
    newest = max(cycles, key=lambda each: each.start_order)
    assert newest.started is not None
    given, frozen = (str(newest.started.settings[each]) for each in ("adapter_from", "start_from"))
    assert (told["given"]["incumbent"], told["given"]["base"]) == (given, given)
    shown = json.loads(done(cluster, "model", "show", "tiny/1/base", "-o", "json"))["model"]
    assert shown["id"] == given
    (made,) = (cluster[0].state_dir / "runs").glob(f"*{newest.started.cycle[:8]}*/round-1")
    assert base_named_in(made) == frozen
