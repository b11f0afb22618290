"""Small gangs that train in processes of their own, each rank of a speed of its own.

Owns telling the ranks what to do, and what they told. They are forked from one process per engine,
for importing one takes ten times as long as their training. Doesn't know what a test wants to see.
"""

import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jupiterd.cycle.training.plan import TrainPlan, derive
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.routes import free_port
from tests.support.warm_program import Streams, start_trainer
from tests.support.workers.open_store import OpenStore
from tests.support.workers.tiny_run import make_inputs, tiny_shape, train_params

ENGINES = ("torch", "mlx")
HOST = "127.0.0.1"
BATCH = 16
_STANDARD_ERROR = 2

Told = Mapping[str, Any]


def plan_of(steps: int) -> TrainPlan:
    changes = {"steps": steps, "batch_sequences": BATCH, "learning_rate": 2e-3}
    return derive(tiny_shape(), 1, changes).model_copy(update={"checkpoint_every_steps": steps})


class Nursery:
    """A process that has imported an engine, and forks ranks."""

    def __init__(self, engine: str) -> None:
        read_orders, write_orders = os.pipe()
        read_ends, write_ends = os.pipe()
        self._process = start_trainer(
            "tests.support.workers.rank_nursery",
            [engine],
            worker_environment("train", {"engine": engine, "threads": 1}),
            Streams(read_orders, write_ends, _STANDARD_ERROR),
        )
        os.close(read_orders)
        os.close(write_ends)
        self._orders, self._ends = os.fdopen(write_orders, "w"), os.fdopen(read_ends)

    def run(self, specs: Sequence[Path]) -> str:
        """Have ranks run to their ends; return its line about these, or nothing where it ended."""
        self._orders.write(json.dumps([str(spec) for spec in specs]) + "\n")
        self._orders.flush()
        return self._ends.readline()

    def end(self) -> None:
        """End it and its ranks, whatever they do."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._orders.close()
        self._ends.close()


class Gangs:
    """Trains one gang after the other."""

    def __init__(self) -> None:
        self._nurseries: dict[str, Nursery] = {}

    def trained(
        self,
        folder: Path,
        engine: str,
        steps: int,
        sequence_s: Sequence[float],
        micro_batches: Sequence[int] = (2, 3),
        nudge_step: int = 0,
        odd: Mapping[str, Any] | None = None,
        more_inputs: Mapping[str, str] | None = None,
        more_params: Mapping[str, Any] | None = None,
    ) -> list[Told]:
        """Train with as many ranks as there are speeds; the last may be told something else."""
        inputs, ranks = make_inputs(folder) | dict(more_inputs or {}), len(sequence_s)
        meeting = meeting_of(engine, ranks, OpenStore().serve())
        specs = [
            written(
                folder / str(rank),
                {
                    "engine": engine,
                    "inputs": inputs,
                    "sequence_s": sequence_s[rank],
                    "nudge_step": nudge_step if rank == ranks - 1 else 0,
                    "params": train_params(tiny_shape(), plan_of(steps), rank=rank, **meeting)
                    | {"micro_batch_sequences": micro_batches[rank], **(more_params or {})}
                    | ((odd or {}) if rank == ranks - 1 else {}),
                },
            )
            for rank in range(ranks)
        ]
        self._run(engine, specs)
        return [told_by(spec.parent) for spec in specs]

    def serve(self, engine: str, addresses: Sequence[Path]) -> None:
        """Let ranks take their tasks from there, and return when they have ended."""
        specs = [
            written(address.parent, {"engine": engine, "address": str(address)})
            for address in addresses
        ]
        self._run(engine, specs)

    def end(self) -> None:
        """End all processes, whatever they do."""
        for nursery in self._nurseries.values():
            nursery.end()

    def _run(self, engine: str, specs: Sequence[Path]) -> None:
        """Let the ranks run to their ends; the test's time limit is ours."""
        try:
            self._ask(engine, specs)
        except BaseException:  # it would answer the next test with this one's end
            self._nurseries.pop(engine).end()
            raise

    def _ask(self, engine: str, specs: Sequence[Path]) -> None:
        if engine not in self._nurseries:
            self._nurseries[engine] = Nursery(engine)
        line = self._nurseries[engine].run(specs)
        logs = [spec.with_name("log").read_text() for spec in specs]
        assert line, "\n".join(["the nursery has ended", *logs])
        assert json.loads(line) == [0] * len(specs), "\n".join([line, *logs])


def meeting_of(engine: str, ranks: int, store: str) -> dict[str, Any]:
    """Return what the ranks of a gang are told, to find each other."""
    return {
        "engine": engine,
        "world_size": ranks,
        "epoch": 1,
        "store": store,
        "timeout_s": 60,
        "ring": [f"{HOST}:{free_port(HOST)}" for _ in range(ranks)],
    }


def written(folder: Path, spec: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "spec.json"
    path.write_text(json.dumps(spec | {"folder": str(folder)}))
    return path


def told_by(folder: Path) -> Told:
    path = folder / "steps.json"
    assert path.exists(), (folder / "log").read_text()
    return json.loads(path.read_text())
