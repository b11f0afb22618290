"""Tokens per second of our torch loop: `python -m tests.bench.train.single [ROUNDS [THREADS]]`.

Owns who is measured against whom, and the table. All contestants do a few steps in turn, round
after round, so that a busy machine hits them alike; each ratio is the median over the rounds.

On a CPU: Hugging Face's Trainer with transformers' Qwen3, the plain loop with that model, the plain
loop with our own Qwen3, and the plain loop with nanoGPT's model against ours with GPT-2. On a GPU:
our compiled bf16 loop against a plain compiled one, with the share of the device's peak.
"""

import importlib.metadata
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from jupiterd.cycle.training.engine_options import EngineOptions
from jupiterd.cycle.training.memory import flops_per_token
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, parse_model
from jupiterd.workers.tokens.shards import ShardSet, ShardWriter
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.loop import StepDone, TrainingLoop
from jupiterd.workers.train.model_config import model_config
from jupiterd.workers.train.torch.device import peak_of
from jupiterd.workers.train.torch.loss_model import LossModel
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.train.torch.torch_model import make_model
from tests.bench.figure import machine
from tests.bench.train.moment import Moment, now
from tests.bench.train.plain_loop import NanoGpt, PlainLoop

MODELS = Path(__file__).resolve().parents[3] / "config" / "models"
WARM_STEPS, STEPS = 1, 4
BATCH = (2, 4, 256)
"""Micro batches in a step, sequences in each, tokens in each of those; on a CPU."""

Contestant = Callable[[int], Sequence[Moment]]
"""Takes so many steps; returns when each was done."""


def preset(name: str) -> ModelShape:
    return parse_model((MODELS / f"{name}.yaml").read_text(encoding="utf-8"))


def gpt2_of_one_million() -> ModelShape:
    return preset("1m").model_copy(update={"architecture": "gpt2", "ff": 512, "kv_heads": 2})


def write_shards(folder: Path, shape: ModelShape, sequences: int = 400) -> Path:
    """Write random tokens as shards; return the one file that holds them all."""
    writer = ShardWriter(folder, shape.vocab_size)
    tokens = np.random.default_rng(0).integers(0, shape.vocab_size, sequences * shape.seq_len + 1)
    writer.append(tokens.tolist())
    writer.finish(
        seq_len=shape.seq_len,
        tokenizer_hash="",
        documents=1,
        size_bytes=1,
    )
    return folder / "00000.bin"


def ours(
    shape: ModelShape,
    shards: Path,
    batch: tuple[int, int, int],
    device: str = "cpu",
    change: Callable[[LossModel], None] = lambda _: None,
) -> Contestant:
    """Return our loop, as a rank runs it; `change` makes its loss differ from what is chosen."""
    micro_batches, sequences, _ = batch
    plan = derive(shape, 1).model_copy(
        update={
            "batch_sequences": micro_batches * sequences,
            "micro_batch_sequences": sequences,
            "options": EngineOptions(compile="auto"),
        }
    )
    engine = TorchEngine(shape, plan, 0, ProcessGroup(0, 1), device)
    change(engine._scored)
    engine.begin(has_same_weights=True)
    data = RankBatches(ShardSet(shards), "bench", micro_batches * sequences, sequences)

    def run(steps: int) -> Sequence[Moment]:
        ends: list[Moment] = []

        def done(_: StepDone) -> None:
            ends.append(now())

        short = TrainPlan.from_plain(plan.to_plain() | {"steps": steps})
        TrainingLoop(engine, short, data, lambda: False, done).run(0)
        return ends

    return run


def plain(loop: PlainLoop) -> Contestant:
    def run(steps: int) -> Sequence[Moment]:
        ends: list[Moment] = []
        for _ in range(steps):
            loop.step()
            ends.append(now())
        return ends

    return run


def step_of(contestant: Contestant, warm_steps: int = WARM_STEPS, steps: int = STEPS) -> Moment:
    """Return how long one step takes, after some that don't count."""
    ends = contestant(warm_steps + steps)
    return ends[-1].since(ends[warm_steps - 1], steps)


def on_cpu(folder: Path) -> dict[str, tuple[Contestant, str]]:
    """Return everybody, and whom each is measured against; ours against nobody."""
    from tests.bench.train.rivals.trainer import trainer_steps

    shape, gpt2 = preset("1m"), gpt2_of_one_million()
    tokens = write_shards(folder / "shards", shape)
    theirs = [AutoModelForCausalLM.from_config(model_config(shape)) for _ in range(2)]
    own = make_model(shape, 0)
    nano = NanoGpt(shape.vocab_size, shape.seq_len, gpt2.hidden, gpt2.layers, gpt2.heads)

    def trainer(steps: int) -> Sequence[Moment]:
        return trainer_steps(theirs[0], tokens, BATCH, steps)

    def of_theirs(ids: torch.Tensor) -> torch.Tensor:
        return theirs[1](input_ids=ids, use_cache=False).logits

    def of_own(ids: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(own.hidden(ids), own.output_weight)

    return {
        "ours, Qwen3": (ours(shape, folder / "shards", BATCH), ""),
        "HF Trainer, transformers' Qwen3": (trainer, "ours, Qwen3"),
        "plain loop, transformers' Qwen3": (
            plain(PlainLoop(theirs[1], of_theirs, tokens, BATCH)),
            "ours, Qwen3",
        ),
        "plain loop, our Qwen3": (plain(PlainLoop(own, of_own, tokens, BATCH)), "ours, Qwen3"),
        "ours, GPT-2": (ours(gpt2, folder / "shards", BATCH), ""),
        "plain loop, nanoGPT's model": (plain(PlainLoop(nano, nano, tokens, BATCH)), "ours, GPT-2"),
    }


def compare(contestants: dict[str, tuple[Contestant, str]], rounds: int) -> None:
    """Print tokens/s of each, and ours divided by each of the others'."""
    times: dict[str, list[Moment]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, (contestant, _) in contestants.items():
            times[name].append(step_of(contestant))
    tokens = BATCH[0] * BATCH[1] * BATCH[2]
    for name, (_, against) in contestants.items():
        rate = tokens / statistics.median(step.clock_s for step in times[name])
        told = _ratios(times[name], times[against]) if against else ""
        print(f"{name}: {rate:,.0f} tokens/s{told}", flush=True)


def _ratios(theirs: list[Moment], ours_: list[Moment]) -> str:
    pairs = list(zip(theirs, ours_, strict=True))
    by_clock = statistics.median(a.clock_s / b.clock_s for a, b in pairs)
    by_processor = statistics.median(a.processor_s / b.processor_s for a, b in pairs)
    verdict = "reached" if by_clock >= 1.0 else "MISSED"
    return (
        f"; ours is {by_clock:.2f} x by the clock, {by_processor:.2f} x by processor time "
        f"[>= 1.0 {verdict}]"
    )


def on_gpu(folder: Path) -> None:
    """Print tokens/s and the share of the peak of 100m, 350m and 1b, bf16 and compiled."""
    device = torch.cuda.get_device_name()
    peak = peak_of([device])
    for size, batch in (("100m", (1, 32, 1024)), ("350m", (1, 16, 1024)), ("1b", (1, 8, 1024))):
        shape = preset(size)
        tokens = write_shards(folder / size, shape)
        count = batch[0] * batch[1] * batch[2]
        own = count / step_of(ours(shape, folder / size, batch, "cuda"), 5, 20).clock_s
        torch.cuda.empty_cache()
        model = AutoModelForCausalLM.from_config(model_config(shape)).to("cuda")
        compiled: Any = torch.compile(lambda ids, m=model: m(input_ids=ids, use_cache=False).logits)
        loop = plain(PlainLoop(model, compiled, tokens, batch, "cuda"))
        other = count / step_of(loop, 5, 20).clock_s
        share = f"MFU {own * flops_per_token(shape) / peak:.1%}" if peak else "MFU N/A"
        print(
            f"{size} on {device}: {own:,.0f} tokens/s, {share}; {own / other:.2f} x plain compiled"
        )
        del model, compiled
        torch.cuda.empty_cache()


def main() -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    if len(sys.argv) > 2:
        torch.set_num_threads(int(sys.argv[2]))
    names = ("torch", "transformers", "accelerate", "numpy")
    print(machine())
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))
    print(f"{torch.get_num_threads()} threads, fp32, batches of {BATCH}, {rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        compare(on_cpu(Path(folder)), rounds)
        if torch.cuda.is_available():
            on_gpu(Path(folder))
        else:
            print("100m, 350m and 1b, bf16 and compiled on a GPU: not run, there is no CUDA device")


if __name__ == "__main__":
    main()
