"""One training run on machines of which any may be away: asked for, and followed to its end.

Owns asking whoever answers, and what is told of a failure. Doesn't know what is done to them.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence

from jupiterd.client.question import answer_to
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.errors import JupiterError
from tests.support.daemons.cluster import Document
from tests.support.network.machines import Machine, Machines, in_short

LOOK_S = 0.1
ANSWER_S = 1.0


class AskedRun:
    """A run, and the machines that may tell of it."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._id = ""

    def _start(self, *words: str | int) -> None:
        given = map(str, words)
        started = self._machines.ctl("train", "start", *given, "-o", "json")
        assert started.returncode == 0, started.stderr
        self._id = json.loads(started.stdout)["train"]

    async def _told(
        self, among: Sequence[Machine], first: Callable[[Document], int] = lambda _: 0
    ) -> tuple[Document, Machine]:
        """Return what the one of these says that has come the furthest."""
        said = await asyncio.gather(*(self._ask(machine) for machine in among))
        return max(
            zip(said, among, strict=True),
            key=lambda pair: (first(pair[0]), pair[0].get("epoch", -1), pair[0].get("step", 0)),
        )

    async def _ask(self, machine: Machine) -> Document:
        question = (f"train/{self._id}", machine.state_dir, ANSWER_S)
        try:
            return ((await asyncio.to_thread(answer_to, *question)) or {}).get("train") or {}
        except JupiterError:
            return {}

    async def _ended(self, within_s: float) -> Document:
        deadline_s = time.monotonic() + within_s
        while True:
            run, _ = await self._told(self._machines.machines)
            assert run.get("state") != "failed", await self._failure(str(run["failure"]))
            if run.get("state") == "finished":
                return run
            if time.monotonic() > deadline_s:
                raise AssertionError(await self._failure(f"no end in {within_s:g} s"))
            await asyncio.sleep(LOOK_S)

    def _recorded(self, machine: int = 0) -> CycleState:
        cycles = self._machines[machine].state().cycles
        return next(run for name, run in cycles.items() if name == self._id)

    async def _failure(self, what: str) -> str:
        """Return a failure's text with the state of every machine and the end of its log."""
        rows: list[str] = [what]
        for machine in self._machines.machines:
            run = {k: v for k, v in (await self._ask(machine)).items() if k != "phases"}
            rows += [in_short(await machine.view()), f"  {run}", f"  runs {machine.workers()}"]
        return self._machines.failure_text("\n".join(rows))


def is_open(run: Document) -> bool:
    """Say whether there is anything left to train, as far as it is known."""
    return not run or (run["state"] in ("running", "waiting") and run["phase"] != "evaluate")
