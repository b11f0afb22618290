"""`jupiterctl model chat` with a real daemon, whose engine runs a tiny model."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.support.ctl.chat_terminal import chat_terminal
from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.warm_program import JUPITERCTL, run_program
from tests.support.workers.tiny_models import write_model

ANSWER_S = 60.0

pytestmark = [pytest.mark.net, pytest.mark.slow]


async def chat(daemon: Daemon, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [JUPITERCTL, "--state-dir", daemon.state_dir, "model", "chat", *arguments]
    return await asyncio.to_thread(run_program, command, ANSWER_S, daemon.log.parent)


@pytest.mark.timeout(180)
async def test_a_folder_s_model_is_talked_to_and_stopped(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "llama")
    tuned = write_model(tmp_path / "tuned", "llama", is_chat=True)
    async with running([Daemon(tmp_path, "alone")]) as cluster:
        await cluster.meet()
        daemon = cluster.daemons[0]
        await _none_yet(daemon)
        await _one_answer(cluster, base, tuned)
        await asyncio.to_thread(_conversation, daemon, tuned)


async def _none_yet(daemon: Daemon) -> None:
    ran = await chat(daemon, "promoted", "is anybody there?")
    assert (ran.returncode, "there is no model yet" in ran.stderr) == (6, True), ran.stderr
    assert "cycle start" in ran.stderr


async def _one_answer(cluster: Cluster, base: Path, tuned: Path) -> None:
    """A base model completes, a chat model answers, both beside each other and the same again."""
    options = ("--max-tokens", "6", "--temperature", "0", "--beside", str(tuned), "-o", "json")
    told: list[list[str]] = []
    for _ in range(2):
        ran = await chat(cluster.daemons[0], str(base), "the bread rises", *options)
        assert ran.returncode == 0, cluster.failure_text(ran.stderr)
        answers = json.loads(ran.stdout)["answers"]
        assert [each["chat"] for each in answers] == [False, True]
        assert [each["completion_tokens"] for each in answers] == [6, 6]
        told.append([each["text"] for each in answers])
    assert told[0] == told[1]
    ran = await chat(cluster.daemons[0], str(base), "the bread " * 400)
    assert ran.returncode == 2, ran.stderr
    assert "512" in ran.stderr, "both numbers are told"


def _conversation(daemon: Daemon, tuned: Path) -> None:
    options = ("--max-tokens", "8", "--temperature", "0")  # drawn, it might end sooner
    with chat_terminal(daemon.state_dir, str(tuned), *options) as terminal:
        terminal.until(lambda shown: ">>>" in shown)
        terminal.press(b"the yeast\r")
        terminal.until(lambda shown: "8 tokens" in shown and shown.count(">>>") == 2)
        terminal.press(b"/set max_tokens 300\r")
        terminal.until(lambda shown: shown.count(">>>") == 3)
        terminal.press(b"and the bread\r")
        terminal.until(lambda shown: "300 tokens" in shown and shown.count(">>>") == 4)
        terminal.press(b"\x04")  # typed during an answer, the system drops it as lines are edited
        assert terminal.ended() == 0
