"""A cycle that waits after each phase, answered as scripts do and at a terminal."""

import contextlib
import json
import os
import pty
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.daemons.cluster import BIN, Cluster, Daemon, Document, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(180),
]

QUESTIONS = (
    '{"question": "What does a queue hold?", "answer": "tickets"}\n'
    '{"question": "def count_", "choices": ["order", "zzzzz"], "answer": "order"}\n'
)


async def test_a_cycle_waits_after_each_phase_and_does_one_again(tmp_path: Path) -> None:
    domain = str(write_domain(tmp_path, steps=5, questions=QUESTIONS))
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "alone", prefix)]) as cluster:
            await cluster.meet()
            started = cluster.ctl("cycle", "start", "--domain", domain, "--interactive")
            assert started.returncode == 0, started.stderr
            await _asked(cluster, "collect")
            _answer(cluster)
            await _asked(cluster, "filter")
            before = _kept(cluster)
            shares = "mix_ratio.synthetic_share=0.1"
            _answer(cluster, "--redo", "--set", shares)
            await _asked(cluster, "filter")
            assert _kept(cluster) == before, "the same work comes to the same text"
            recorded = [fact for _, fact in _cycle(cluster).placed()]
            items = [getattr(fact, "item", "") for fact in recorded]
            assert {"r1/filter/0", "r1/filter/0~1"} <= set(items)
            told = _at_a_terminal(cluster, ["redo pack", "later"])
            assert "pack of round 1 has no results yet" in told
            assert "kept, 5 of them:" in told
            assert told.count("package_") >= 5, told
            for phase in ("filter", "pack", "train", "evaluate"):
                await _asked(cluster, phase)
                _answer(cluster)
            await _asked(cluster, "gate")
            refused = cluster.ctl("cycle", "resume", "--redo", "train")
            assert "train isn't done again" in refused.stderr
            _answer(cluster, "--redo", "evaluate")
            await _asked(cluster, "evaluate")
            _answer(cluster, "--auto")
            ended = await cluster.until(lambda found: found["state"] == "finished", "the end", 90)
            assert [row["state"] for row in ended["phases"] if row["phase"] == "pack"] == ["done"]
            decided = cluster.ctl("gate", "run", "-o", "json")
            assert decided.returncode == 0, decided.stderr
            explained = cluster.ctl("cycle", "explain")
            assert "this was look 2 at the held-out text" in explained.stdout
            assert "Your own questions: the candidate " in explained.stdout
            (tmp_path / "questions.jsonl").unlink()  # the cycle has them
            scored = cluster.ctl("model", "eval", "tiny/1", "-o", "json", timeout_s=120)
            assert scored.returncode == 0, scored.stderr
            own = json.loads(scored.stdout)["eval"]["questions"]
            assert (own["domain"], own["questions"], len(own["answers"])) == ("tiny", 2, 2)
            assert own["models"][0]["low"] <= own["models"][0]["share"]


async def _asked(cluster: Cluster, phase: str) -> Document:
    reason = f"waiting for your answer after {phase} of round 1"

    def waits(cycle: Document) -> bool:
        return cycle["state"] == "paused" and cycle["paused"]["reason"] == reason

    found = await cluster.until(waits, reason, 60)
    assert found["paused"]["asks"]
    return found


def _answer(cluster: Cluster, *options: str) -> None:
    resumed = cluster.ctl("cycle", "resume", *options, "-o", "json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["domain"] == "tiny"


def _cycle(cluster: Cluster):
    (cycle,) = cluster[0].state().cycles.values()
    return cycle


def _kept(cluster: Cluster) -> str:
    return _cycle(cluster).completed[1, "r1/filter/0"].outputs["kept"]


def _at_a_terminal(cluster: Cluster, answers: list[str]) -> str:
    """Follow the cycle at a terminal, and answer each question; return what was shown by then."""
    ours, theirs = pty.openpty()
    command = [BIN / "jupiterctl", "--state-dir", cluster[0].state_dir, "cycle", "watch"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        shown, left, deadline_s = "", list(answers), time.monotonic() + 60
        with contextlib.suppress(OSError):  # the other end is closed where it has ended
            while time.monotonic() < deadline_s:
                shown += os.read(ours, 4096).decode(errors="replace")
                if left and shown.count("later? [go on]:") == len(answers) - len(left) + 1:
                    os.write(ours, f"{left.pop(0)}\n".encode())
        os.close(ours)
        process.wait(20)
    assert not left, shown
    return shown
