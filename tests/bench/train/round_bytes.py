"""What islands send of a round where they train an adapter, beside all of a model's weights.

Owns these figures, of SmolLM2-135M's shape. The numbers are drawn; how many there are decides.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.adapters.adapter_size import adapter_parameters
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.workers.islands.compression import Compressor
from jupiterd.workers.islands.pseudo_gradient_file import write_pseudo_gradient
from tests.bench.train.rivals.lora import shape_of
from tests.real.smollm2 import NotInTheIndexError, model_folder

RANKS = (8, 16)
MIB = 1 << 20


def print_round_bytes() -> None:
    """Print the bytes of one island's pseudo-gradient in int8, of each rank and of all weights."""
    try:
        shape = shape_of(model_folder())
    except NotInTheIndexError as error:
        print(f"bytes of a round: not run, the package index doesn't give the model ({error})")
        return
    counts = {f"rank {rank}": adapter_parameters(shape, _options(rank)) for rank in RANKS}
    counts["full tuning"] = parameter_count(shape)
    sent = {name: _sent_bytes(count) for name, count in counts.items()}
    for name, count in counts.items():
        share = sent["full tuning"] / sent[name]
        told = f"{sent[name] / MIB:.2f} MiB" + (f", 1/{share:.0f} of all" if share > 1 else "")
        print(f"  an island's round, {name}: {count:,} numbers, {told}", flush=True)


def _options(rank: int) -> AdapterOptions:
    return AdapterOptions(rank=rank, alpha=2.0 * rank)


def _sent_bytes(count: int) -> int:
    drawn = np.random.default_rng(0).standard_normal(count, dtype=np.float32)
    with TemporaryDirectory() as place:
        folder = Path(place) / "round"
        write_pseudo_gradient(folder, Compressor(count, "int8").packed(drawn))
        return sum(path.stat().st_size for path in folder.iterdir())
