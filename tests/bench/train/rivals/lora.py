"""An adapter to a real model beside rivals: tokens/s by the clock and processor time, and memory.

Owns who is measured against whom; `race` says how. All have the same text, micro batches, threads
and environment, fp32 and AdamW, and the same matrices get an adapter. The rivals are a script with
the package peft, and `mlx_lm lora`. One that isn't installed is told as not run.
"""

import importlib.metadata
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, parse_model
from jupiterd.cycle.training.tuning import tuned
from jupiterd.daemon.catalog.model_specs import text_of_config
from tests.bench.train.rivals.own_steps import Ended, take_steps
from tests.bench.train.rivals.race import OURS, Race, print_rates, taken_by_turns
from tests.bench.train.rivals.tuning import MOST_ROUNDS, SEQ_LEN, SEQUENCES, write_text
from tests.bench.train.rivals.turns import Turns
from tests.real.smollm2 import NotInTheIndexError, model_folder

ADAPTER = AdapterOptions(rank=16, alpha=32)
RATE = 2e-4
PEFT, MLX_LM = "peft script", "mlx_lm lora"
RIVALS = {"torch": {PEFT: 1.0}, "mlx": {MLX_LM: 0.95}}
"""Engine -> who else tunes on it, and how many times as fast as they we are to be."""
MOST_MEMORY = 1.05
NEEDED = {PEFT: "peft", MLX_LM: "mlx_lm"}
LIBRARIES = {"torch": ("torch", "transformers", "peft"), "mlx": ("mlx", "mlx-lm")}
SETTINGS = {
    PEFT: "get_peft_model(LoraConfig(r=16, lora_alpha=32, target_modules='all-linear')), "
    "AdamW(fused=True), clip_grad_norm_(1.0), a loop of its own",
    MLX_LM: "mlx_lm lora --train --num-layers 30 --batch-size 4 --max-seq-length 257 "
    "--optimizer adamw --learning-rate 2e-4, lora_parameters rank 16, scale 2",
}
"""What a rival is run as."""


def shape_of(folder: Path) -> ModelShape:
    config = (folder / "config.json").read_text(encoding="utf-8")
    shape = parse_model(text_of_config(folder.name, config, SEQ_LEN))
    return tuned(shape, has_adapter=True)


def plan_of(shape: ModelShape, steps: int) -> TrainPlan:
    changes = {"batch_sequences": SEQUENCES, "micro_batch_sequences": SEQUENCES, "steps": steps}
    plan = derive(shape, 1).model_copy(update=changes)
    options = plan.options.model_copy(update={"adapter": ADAPTER})
    return TrainPlan.from_plain(plan.model_copy(update={"options": options}).to_plain())


def ours(engine_name: str, model: Path, data: Path, steps: int, ended: Ended) -> None:
    """Take steps as a rank does, but for what it tells its daemon."""
    from jupiterd.workers.train.checkpoints.checkpoint import load_base
    from tests.bench.train.vocabulary import engine_of

    shape = shape_of(model)
    plan = plan_of(shape, steps)
    engine = engine_of(engine_name, shape, plan)
    load_base(model, engine)
    take_steps(engine, plan, data / "shards", ended)


def of_peft(model: Path, data: Path, steps: int, ended: Ended) -> None:
    """Train as scripts with peft do, with nothing but what a step needs."""
    import torch
    from peft import LoraConfig, get_peft_model
    from torch.utils.data import DataLoader
    from transformers import AutoModelForCausalLM

    from tests.bench.train.rivals.trainer import Sequences

    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    config = LoraConfig(
        r=ADAPTER.rank, lora_alpha=int(ADAPTER.alpha), target_modules="all-linear",
        lora_dropout=0.0, task_type="CAUSAL_LM",
    )  # fmt: skip
    loaded: Any = get_peft_model(base, config)
    loaded.train()
    trained = [each for each in loaded.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.0, fused=True)
    rows = DataLoader(Sequences(data / "tokens.bin", SEQ_LEN), SEQUENCES, shuffle=True)
    for _, batch in zip(range(steps), rows, strict=False):
        loaded(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        ended()


def of_mlx_lm(model: Path, data: Path, steps: int, ended: Ended) -> None:
    """Run what `mlx_lm lora --train` runs."""
    from mlx_lm.lora import train_model
    from mlx_lm.tuner.datasets import load_dataset

    from tests.bench.train.rivals.mlx_lm_command import StepEnds, arguments, load_in_fp32

    loaded, tokenizer = load_in_fp32(model)
    factors = {"rank": ADAPTER.rank, "dropout": 0.0, "scale": ADAPTER.scale}
    asked = arguments(
        data, loaded, steps, SEQUENCES, SEQ_LEN, learning_rate=RATE, lora_parameters=factors
    )
    train_model(asked, loaded, load_dataset(asked, tokenizer)[0], [], StepEnds(ended))


def print_lora(engine: str, rounds: int) -> None:
    """Print what each takes, and ours beside the others'."""
    title = f"an adapter {ADAPTER.to_text()} to SmolLM2-135M, {engine}"
    rivals = {who: goal for who, goal in RIVALS[engine].items() if _is_installed(who)}
    for who in RIVALS[engine].keys() - rivals:
        print(f"{title}: {who} not run: pip install peft==0.21.2 accelerate", flush=True)
    try:
        model = model_folder()
    except NotInTheIndexError as error:
        print(f"{title}: not run, the package index doesn't give the model ({error})")
        return
    if not rivals:
        return
    rounds = min(rounds, MOST_ROUNDS)
    names = ", ".join(f"{each} {importlib.metadata.version(each)}" for each in LIBRARIES[engine])
    print(
        f"{title}: {names}; fp32, AdamW, {SEQUENCES} x {SEQ_LEN} tokens a step in one micro batch, "
        f"{os.cpu_count()} threads, a step each by turns, {rounds} rounds after one that doesn't "
        "count",
        flush=True,
    )
    for who in rivals:
        print(f"  {who}: {SETTINGS[who]}", flush=True)
    with tempfile.TemporaryDirectory() as data:
        write_text(Path(data), model)
        race = Race(__spec__.name, engine, rivals, SEQUENCES * SEQ_LEN, MOST_MEMORY)
        print_rates(race, taken_by_turns(race, model, Path(data), rounds))


def _is_installed(who: str) -> bool:
    return importlib.util.find_spec(NEEDED[who]) is not None


def main() -> None:
    engine, who, model, data = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    steps, ended = int(sys.argv[5]), Turns().ended
    contestants: dict[str, Callable[[], None]] = {
        OURS: lambda: ours(engine, model, data, steps, ended),
        PEFT: lambda: of_peft(model, data, steps, ended),
        MLX_LM: lambda: of_mlx_lm(model, data, steps, ended),
    }
    contestants[who]()


if __name__ == "__main__":
    main()
