"""Real islands on machines with links of their own, which carry so much and no more.

Owns starting them and one run on them. Doesn't know what is measured.
"""

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import islands_of
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.ids import CycleId
from jupiterd.workers.train.model_config import config_fields, model_config
from tests.bench.artifacts.stations import shape as shaped
from tests.bench.islands.rounds import Heard, heard
from tests.bench.islands.stamps import Stamps
from tests.bench.islands.text import write_files
from tests.support.daemons.cluster import Document
from tests.support.network.lab import lab_of, why_there_is_no_lab
from tests.support.network.links import THROTTLE
from tests.support.network.machines import Machines, machines_of

SEQ_LEN = 16
BATCH = 32
"""Sequences of an island and step: short ones, so that they can be shared as speeds are."""

FILES = 150
JOIN_S = 60.0
PREPARED_S = 120.0
LOOK_S = 2.0
"""Between two questions whether a run is over: answering takes processor time."""


@dataclass
class Wired:
    """Machines that know each other, with data and a model."""

    machines: Machines
    stamps: Stamps
    model: Path
    runs: dict[int, str] = field(default_factory=dict[int, str])
    """The last one that was asked for, by the number of the machine that was."""
    _began: int = 0
    """Lines that had been said by then."""
    _seed: int = 0
    """Of the last run. Each has its own: what was sent once wouldn't be sent again."""

    @property
    def run(self) -> str:
        """Return the run of all."""
        return self.runs[0]

    @property
    def names(self) -> list[str]:
        """Return the machines' names, by their numbers."""
        return [machine.name for machine in self.machines.machines]

    async def start(
        self, steps: int, *options: str, machine: int = 0, is_first: bool = True
    ) -> None:
        """Start a run by asking a machine.

        is_first: what was said before isn't of interest
        """
        words = ("train", "start", "--data", "text", "--model", str(self.model))
        sizes = ("--seq-len", SEQ_LEN, "--batch-size", BATCH, "--gradient-accumulation-steps", 1)
        self._seed += 1
        drawn = ("--seed", str(self._seed))
        more = (*map(str, sizes), "--max-steps", str(steps), *drawn, *options, "-o", "json")
        if is_first:
            self._began = len(self.stamps.said)
        asked = self.machines[machine]
        started = await asyncio.to_thread(self.machines.ctl, *words, *more, daemon=asked)
        assert started.returncode == 0, started.stderr
        self.runs[machine] = json.loads(started.stdout)["train"]

    async def told(self, machine: int = 0) -> Document:
        """Return what a machine says of the run."""
        return (
            (await self.machines[machine].ask(f"train/{self.runs.get(machine, self.run)}")) or {}
        ).get("train") or {}

    async def until_over(self, timeout_s: float, machine: int = 0) -> Document:
        """Wait for the run's end; return what was told of it with the first prediction."""
        deadline_s, foretold = time.monotonic() + timeout_s, {}
        while True:
            told = await self.told(machine)
            assert told.get("state") != "failed", self.machines.failure_text(str(told["failure"]))
            if told.get("state") == "finished":
                return foretold
            foretold = foretold or (told if told.get("predicted_tokens_per_s") else {})
            assert time.monotonic() < deadline_s, self.machines.failure_text(f"not over: {told}")
            await asyncio.sleep(LOOK_S)

    def heard(self) -> dict[str, Heard]:
        """Return what the first rank on each machine has said of the run."""
        return heard(self.stamps.said[self._began :])

    def recorded(self, machine: int = 0) -> CycleState:
        """Return what the ledger on a machine's disk says of the run."""
        cycles = self.machines[machine].state().cycles
        return next(state for name, state in cycles.items() if name == self.run)

    def islands(self, machine: int = 0) -> dict[str, str]:
        """Return the run of each machine's island."""
        state = self.machines[machine].state()
        names = {node: fact.name for node, fact in state.members.items()}
        found = islands_of(state.cycles, CycleId(self.run))
        return {names[started.nodes[0]]: started.cycle for _, started in found}


@contextlib.asynccontextmanager
async def wired(count: int, bits_per_s: int, model: ModelShape | Path) -> AsyncGenerator[Wired]:
    """Yield so many machines with a packed data set.

    bits_per_s: what links carry; 0: what they can; model: to be drawn, or the folder of its weights
    """
    assert not why_there_is_no_lab((THROTTLE,)), why_there_is_no_lab((THROTTLE,))
    with tempfile.TemporaryDirectory(prefix="jupiter-bench-") as name, lab_of(count) as lab:
        folder = Path(name)
        for host in lab.hosts if bits_per_s else ():
            shaped(host, bits_per_s)
        write_files(folder / "text", FILES)
        given = model if isinstance(model, Path) else _written(folder / "small", model)
        async with machines_of(lab, folder) as machines:
            await machines.one_cluster(JOIN_S)
            with Stamps(machines.machines) as stamps:
                command = ("data", "prepare", str(folder / "text"), "--wait")
                command += (
                    (
                        "--tokenizer",
                        str(model),
                        "--holdout",
                        "0",
                    )  # to score it takes longer than to train
                    if isinstance(model, Path)
                    else ("--vocab-size", str(model.vocab_size))
                )
                prepared = await asyncio.to_thread(machines.ctl, *command)
                assert prepared.returncode == 0, prepared.stderr
                yield Wired(machines, stamps, given)


def _written(folder: Path, model: ModelShape) -> Path:
    folder.mkdir()
    fields = json.dumps(config_fields(model_config(model)))
    (folder / "config.json").write_text(fields, encoding="utf-8")
    return folder
