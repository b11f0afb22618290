"""How the end of an engine's process is told."""

import sys
from pathlib import Path

import pytest

from jupiterd.cluster.serving.engine_command import EngineCommand
from jupiterd.daemon.serving.engines.engine_process import child_environment, started_engine


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ("sys.exit(3)", "it ended with status 3"),
        ("sys.exit(200)", "it ended with status 200"),  # 72 is no signal
        ("os.kill(os.getpid(), 9)", "it was killed by SIGKILL"),
    ],
)
async def test_an_end_is_told_in_words(tmp_path: Path, ends: str, words: str):
    argv = (sys.executable, "-c", f"import os, sys; {ends}")
    command = EngineCommand(argv, {}, "model")
    log, environment = tmp_path / "engine.log", child_environment("engine", 1)
    async with started_engine(command, environment, log) as process:
        assert await process.ended == words
