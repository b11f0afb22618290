"""Bits per byte of a model on Python outside the standard library: `make score MODEL=FOLDER`.

Owns the choice of text: packages installed beside Jupiter, none of which any round has trained on.
The collecting and the scoring are done by the same workers that a cycle uses.
"""

import argparse
import asyncio
import json
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupiterd.errors import JupiterError, NotFoundError, UsageError, WorkFailedError
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.process import start_worker
from jupiterd.protocol.frames import RunTask, TaskFinished

PACKAGES = ("click", "pydantic", "_pytest", "hypothesis", "zeroconf", "psutil")
EVALUATION = {"min_document_bytes": 256, "max_document_bytes": 16384, "max_cluster_documents": 20}


HOW = "make score MODEL=FOLDER, the folder that a cycle names in its last line, `model:`"


def main() -> int:
    """Score the model named on the command line, package by package and all together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", help="a folder as `model:` names it after a cycle")
    named: str | None = parser.parse_args().model
    try:
        model = model_folder(named)
        with tempfile.TemporaryDirectory() as scratch:
            asyncio.run(score(model, Path(scratch)))
    except JupiterError as error:
        print(f"score: error: {error.message}\n\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return 0


def model_folder(named: str | None) -> Path:
    """Return the model's folder; raises a JupiterError where none was named, or it isn't one."""
    if not named:
        raise UsageError("no model was named", HOW)
    if not (Path(named) / "config.json").is_file():
        raise NotFoundError(f"{named} is no folder with a model", HOW)
    return Path(named).resolve()


async def score(model: Path, scratch: Path) -> None:
    """Collect and score each package, and print the result."""
    rows: list[dict[str, Any]] = []
    for package in PACKAGES:
        collected = await collect(package, scratch / package)
        found = await evaluate(model, collected, scratch / f"{package}-scores")
        rows += found
        print(
            f"{package:<12} {bits_per_byte(found, 'candidate_nats'):.4f} bits per byte", flush=True
        )
    print(
        f"{'together':<12} {bits_per_byte(rows, 'candidate_nats'):.4f} bits per byte, "
        f"{len(rows)} documents, {sum(row['bytes'] for row in rows):,} bytes"
    )


async def collect(package: str, output: Path) -> Path:
    """Return the folder of the package's documents, as a collecting worker made it."""
    source = {
        "kind": "folder",
        "path": str(Path(sysconfig.get_paths()["purelib"]) / package),
        "license": "unknown",
        "glob": "**/*.py",
    }
    params = {
        "source": source,
        "holdout": {"fraction": 0.5, "salt": "outside", "dev": 0.0, "vault": 0.0},
        "language": "code:python",
        "license_policy": {"unknown": "allow"},
        "fetched_at": "1970-01-01T00:00:00+00:00",
    }
    await work("collect", params, {}, output)
    return output


async def evaluate(model: Path, collected: Path, output: Path) -> list[dict[str, Any]]:
    """Return the scores of every document, whichever side of the split it fell on."""
    params = {"piece": 0, "pieces": 1, **EVALUATION}
    inputs = {
        "model": model,
        "kept": collected / "train",  # the baselines are counted on it; they aren't shown here
        "holdout.0": collected / "train",
        "holdout.1": collected / "holdout",
    }
    await work("evaluate", params, inputs, output)
    return read_rows(output / "scores" / "scores.jsonl")


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the scores of a file, one document a line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


async def work(
    task: str, params: Mapping[str, Any], inputs: Mapping[str, Path], output: Path
) -> TaskFinished:
    """Run one worker to its end."""
    await asyncio.to_thread(output.mkdir)
    order = RunTask(task, params, {name: str(path) for name, path in inputs.items()}, str(output))
    environment = worker_environment(task, params)
    async with start_worker(order, environment, output.with_suffix(".log")) as worker:
        async for frame in worker.frames():
            if isinstance(frame, TaskFinished):
                return frame
    raise WorkFailedError(f"the {task} worker ended without a result")


def bits_per_byte(rows: list[dict[str, Any]], key: str) -> float:
    """Return the byte-weighted mean."""
    nats = sum(row[key] for row in rows)
    return nats / 0.6931471805599453 / sum(row["bytes"] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
