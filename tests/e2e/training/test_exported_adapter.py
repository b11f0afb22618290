"""An adapter that was exported where it was trained is used, scored and trained on from there."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.support.daemons.adapter_runs import write_base
from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import write_letters

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(300)]

STEPS = "4"


async def test_its_base_is_found_by_its_id_and_no_other_is_taken(tmp_path: Path) -> None:
    letters = write_letters(tmp_path)
    base = write_base(tmp_path, letters)
    other = other_numbers(base, tmp_path / "other")
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "one", prefix)]) as one:
            await one.meet()
            train(one, letters, base)
            base.rename(tmp_path / "elsewhere")  # only the cluster's store has it where it is known
            adapter = str(tmp_path / "out" / "ad")
            written = ("model", "export", "--to")
            assert_done(one, *written, adapter, newest(one))
            assert_done(one, *written, str(tmp_path / "whole"), adapter, "--merge")
            asked = ("--tasks", str(questions(tmp_path)))
            assert "ad" in assert_done(one, "model", "eval", adapter, *asked)
            looked = assert_done(one, *of_run(letters), "--model", adapter, "--dry-run")
            assert "the adapter that was given" in looked
            for command in (
                (*written, str(tmp_path / "no"), adapter, "--merge", "--base", str(other)),
                ("model", "eval", adapter, "--base", str(other), *asked),
                ("model", "chat", adapter, "--base", str(other), "a b"),
                (*of_run(letters), "--model", str(other), "--adapter", adapter, "--dry-run"),
            ):
                refused = one.ctl(*command)
                assert refused.returncode != 0, command
                assert "it was trained beside other weights" in refused.stderr
            card = (Path(adapter) / "README.md").read_text()
            (said,) = re.findall(r"```sh\njupiterctl (.*?)\n```", card)
            command = shlex.split(said)
            command[-1] = str(tmp_path / "out" / command[-1])  # where the card says both lie
            assert_done(one, *command)
            assert_same_numbers(Path(command[-1]), tmp_path / "elsewhere")


def of_run(letters: Path) -> tuple[str, ...]:
    return ("train", "start", "--data", str(letters), "--seq-len", "64", "--max-steps", STEPS,
            "--lr", "1e-3")  # fmt: skip


def questions(folder: Path) -> Path:
    file = folder / "questions.jsonl"
    file.write_text('{"question": "a?", "choices": ["a", "b"], "answer": 0}\n')
    return file


def train(cluster: Cluster, letters: Path, base: Path) -> None:
    lora = ("--model", str(base), "--lora", "rank=2", "--wait")
    done = cluster.ctl(*of_run(letters), *lora, timeout_s=200)
    assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)


def newest(cluster: Cluster) -> str:
    return json.loads(cluster.ctl("train", "status", "-o", "json").stdout)["train"]["id"]


def assert_done(cluster: Cluster, *command: str) -> str:
    done = cluster.ctl(*command, timeout_s=100)
    assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
    return done.stdout


def other_numbers(base: Path, folder: Path) -> Path:
    """Write a model of the same shapes."""
    folder.mkdir()
    for path in base.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    tensors = load_file(base / "model.safetensors")
    save_file({n: v + np.float32(0.01) for n, v in tensors.items()}, folder / "model.safetensors")
    return folder


def assert_same_numbers(one: Path, other: Path) -> None:
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (one, other))
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
