"""Collections for the tests: run as a worker runs them, or looked into one document at a time."""

import json
import socket
from contextlib import contextmanager
from pathlib import Path

from jupiterd.processes.environment import worker_environment
from jupiterd.protocol.frames import (
    Frame,
    FrameReader,
    Progressed,
    RunTask,
    TaskFinished,
    encode,
)
from jupiterd.workers.data.collect import collect_source as collecting
from jupiterd.workers.data.collect.collect_source import CollectParams, Places
from jupiterd.workers.data.collect.previous_round import PreviousRound
from jupiterd.workers.data.collectors.collector import Visit
from jupiterd.workers.data.extract.extraction import ExtractionLimits, Extractor
from jupiterd.workers.data.skips import SkipLog
from jupiterd.workers.progress import silent
from jupiterd.workers.samples.sample_file import read_lines, read_samples
from tests.support.warm_program import start_worker

PARAMS = CollectParams(0.0, "", "en", "2026-01-02T03:04:05Z", "mine")
_OF_TEXT = ("documents", "train", "holdout")
"""Outputs with samples: the first, or the other two where they are split as they are read."""


def collect(collector, output: Path, params=PARAMS, progress=silent, before: Path | None = None):
    """Collect into a folder; `before` is the output folder of the round before."""
    output.mkdir(parents=True, exist_ok=True)
    scratch = output / "scratch"
    scratch.mkdir(exist_ok=True)
    samples = () if before is None else _of_text(before)
    state = None if before is None else before / "state"
    places = Places(output, scratch, samples, state)
    return collecting.collect(collector, places, params, progress)


def texts_in(output: Path) -> dict[str, str]:
    """Return what was collected: where it came from, and its text."""
    return {sample.source_uri: sample.text for sample in samples_in(output)}


def samples_in(output: Path):
    """Return every sample, in the order of where they came from."""
    found = [sample for folder in _of_text(output) for sample in read_samples(folder)]
    return sorted(found, key=lambda sample: sample.source_uri)


def _of_text(output: Path) -> tuple[Path, ...]:
    return tuple(output / name for name in _OF_TEXT if (output / name).is_dir())


def skipped(output: Path) -> dict[str, str]:
    """Return what was left out, and why."""
    lines = map(json.loads, read_lines(output / "skipped" / "skipped.jsonl.zst"))
    return {line["uri"]: line["reason"] for line in lines}


@contextmanager
def visit_of(tmp_path: Path, limits: ExtractionLimits | None = None):
    """Give what a collector is given."""
    scratch = tmp_path / "visit"
    scratch.mkdir()
    with SkipLog(scratch / "skipped") as skips, Extractor(limits) as extractor:
        previous = PreviousRound(scratch / "previous.db")
        yield Visit(
            scratch, previous, extractor, skips, silent, lambda _seconds: None, lambda: "now"
        )
        previous.close()


def killed_again_and_again(params, folder: Path, strike) -> Path:
    """Let workers do the task until one finishes; return its output folder.

    Args:
        params: of the task `collect`.
        folder: where outputs and the scratch folder lie.
        strike: told the number of the try and what its worker has said; yes: it is killed now.
    """
    for number in range(50):
        output = folder / f"try-{number}"
        output.mkdir()
        order = RunTask("collect", params, {}, str(output), str(folder / "scratch"))
        frames: list[Frame] = []
        process, link = _started(order)
        with link:
            reader = FrameReader()
            while data := link.recv(1 << 16):
                frames += reader.feed(data)
                if strike(number, frames):
                    process.kill()
                    break
        process.wait()
        if isinstance(frames[-1], TaskFinished):
            return output
        assert isinstance(frames[-1], Progressed), frames[-1]
    raise AssertionError("it never finishes")


def _started(order: RunTask):
    ours, theirs = socket.socketpair()
    with theirs:
        environment = worker_environment(order.task, {"threads": 1})
        process = start_worker(order.task, environment, theirs.fileno())
    ours.sendall(encode(order))
    return process, ours
