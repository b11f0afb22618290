"""`mlx_lm lora` tunes a real model on two machines, across a cut of 20 s and killed daemons."""

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from jupiterd.processes.openblas import openblas
from tests.real.pages import write_pages
from tests.real.smollm2 import single_precision
from tests.support.network import links
from tests.support.network.lab import why_there_is_no_lab
from tests.support.network.launched import Launched, two_machines
from tests.support.network.machines import Machines

pytestmark = [pytest.mark.real, pytest.mark.net, pytest.mark.root, pytest.mark.timeout(600)]

STEPS = 20
STEPS_BEFORE_THE_CUT = 4
STEPS_BEFORE_THE_KILLS = 8
CUT_S = 20.0
DEAD_S = 3.0
PAGES_BYTES = 60_000
RECORD_CHARACTERS = 400
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
LOSS = re.compile(r"^\[rank 0\] +(\d+) +(val )?(\d+\.\d+)", re.MULTILINE)


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    if reason := why_there_is_no_lab():
        pytest.skip(reason)
    if openblas() is None:
        pytest.skip("MLX is too slow for this without OpenBLAS: apt-get install libopenblas0")


def write_records(folder: Path) -> Path:
    """Write what `mlx_lm lora` reads: records of text, from real pages."""
    pages = sorted(write_pages(folder / "pages", PAGES_BYTES).rglob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    cuts = range(0, len(text) - RECORD_CHARACTERS, RECORD_CHARACTERS)
    records = [json.dumps({"text": text[cut : cut + RECORD_CHARACTERS]}) for cut in cuts]
    data = folder / "data"
    data.mkdir()
    for name, chosen in (("train", records[8:]), ("valid", records[:8])):
        (data / f"{name}.jsonl").write_text("\n".join(chosen), encoding="utf-8")
    return data


class Tuning(Launched):
    """A launched `mlx_lm lora`, which says a loss at each step, by its first rank alone."""

    def __init__(self, machines: Machines, model: Path, data: Path, adapters: Path) -> None:
        files = ("--model", str(model), "--data", str(data), "--adapter-path", str(adapters))
        steps = ("--iters", str(STEPS), "--steps-per-report", "1", "--steps-per-eval", "1000")
        sizes = ("--batch-size", "2", "--num-layers", "2", "--max-seq-length", "128")
        argv = (sys.executable, "-m", "mlx_lm", "lora", "--train", *files, *steps, *sizes)
        few = ("--val-batches", "1", "--seed", "3")
        fast = ("--env", f"LD_PRELOAD={openblas()}", "--threads", "1")
        super().__init__(machines[0], data.parent, (*argv, *few), fast)

    async def reach(self, step: int) -> None:
        """Read on until a step's loss came."""
        while not any(told[0] >= step for told in self.told()):
            if not await self.read_line():
                raise AssertionError(f"it ended before step {step}\n{self.said}")

    def told(self) -> list[tuple[int, bool, str]]:
        """Return each loss: the step, whether it is that of the held-out text, and its value."""
        found = LOSS.findall(COLOURS.sub("", self.said))
        return [(int(step), bool(is_held_out), loss) for step, is_held_out, loss in found]


async def test_a_cut_and_killed_daemons_change_no_loss_of_mlx_lm(
    model: Path, tmp_path: Path
) -> None:
    data = write_records(tmp_path)
    exact = single_precision(model, tmp_path / "model")
    async with two_machines(tmp_path) as machines:
        calm = Tuning(machines, exact, data, tmp_path / "calm")
        assert await calm.end() == 0, machines.failure_text(calm.said)
        struck = Tuning(machines, exact, data, tmp_path / "struck")
        await struck.reach(STEPS_BEFORE_THE_CUT)
        links.separate([machines[1].host])
        await asyncio.sleep(CUT_S)
        links.heal([machines[1].host])
        await struck.reach(STEPS_BEFORE_THE_KILLS)
        for machine in machines.machines:  # whichever of them leads
            machine.kill()
            await asyncio.sleep(DEAD_S)
            machine.start()
        assert await struck.end() == 0, machines.failure_text(struck.said)
    print("\n".join(map(str, struck.told())))
    assert struck.told() == calm.told(), struck.said
    assert [step for step, is_held_out, _ in struck.told() if not is_held_out] == [
        *range(1, STEPS + 1)
    ]
    assert (tmp_path / "struck" / "adapters.safetensors").read_bytes() == (
        tmp_path / "calm" / "adapters.safetensors"
    ).read_bytes()
    assert "m2 isn't heard of" in struck.said
