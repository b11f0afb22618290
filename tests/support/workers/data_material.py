"""Samples, folders and worker processes for the tests of data, scoring and verdicts."""

import socket
from pathlib import Path

from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.processes.environment import worker_environment
from jupiterd.protocol.frames import FrameReader, RunTask, encode
from jupiterd.workers.samples.sample_file import SampleWriter
from tests.support.warm_program import start_worker

FETCHED_AT = "2026-01-02T03:04:05Z"


def real(text, cluster="json", license_id="PSF-2.0", source=""):
    """Return a real sample."""
    return Sample(
        id=text_hash(text),
        text=text,
        kind="real",
        depth=0,
        parents=(),
        cluster_id=cluster,
        source_uri=f"test:{cluster}",
        revision="1",
        license=license_id,
        collector="python_stdlib@1",
        fetched_at=FETCHED_AT,
        language="code:python",
        source=source,
    )


def synthetic(text, parent="p", license_id="PSF-2.0"):
    """Return a generated sample."""
    fields = {**vars(real(text, license_id=license_id)), "kind": "synthetic", "depth": 1}
    return Sample(**{**fields, "parents": (parent,)})


def function(number, body_lines=3):
    """Return a small Python function, another one for each number."""
    lines = [f"def compute_{number}(first, second):", f'    """Return number {number}."""']
    lines += [f"    value_{n} = first * {number} + {n} - second" for n in range(body_lines)]
    return "\n".join([*lines, "    return value_0", ""])


def write(folder: Path, samples) -> Path:
    """Write a sample folder and return it."""
    with SampleWriter(folder) as writer:
        for sample in samples:
            writer.add(sample)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def run_worker(task, params, inputs, output_dir: Path):
    """Do a task in a real worker process and return its last frame."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            environment = worker_environment(task, {"threads": 1})
            process = start_worker(task, environment, theirs.fileno())
        output_dir.mkdir(parents=True, exist_ok=True)
        paths = {name: str(path) for name, path in inputs.items()}
        ours.sendall(encode(RunTask(task, params, paths, str(output_dir))))
        reader = FrameReader()
        frames = []
        while data := ours.recv(1 << 16):
            frames += reader.feed(data)
        status = process.wait()
    assert frames, f"it ended with {status} before it said anything"
    return frames[-1]
