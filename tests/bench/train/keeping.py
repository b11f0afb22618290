"""What it costs to keep the last finished step: written by the rank, hashed and synced by its node.

python -m tests.bench.train.keeping [SIZE...]
"""

import sys
import tempfile
import time
from pathlib import Path

from jupiterd.cycle.plan import derive, parameter_count, parse_model
from jupiterd.locations import config_folder
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.workers.train.checkpoint import TrainingState, save_checkpoint
from jupiterd.workers.train.group import Group
from jupiterd.workers.train.torch_engine import TorchEngine
from tests.bench.figure import machine

SIZES = {
    "1m": {},
    "25m": {"hidden": 384, "layers": 10, "ff": 1152, "heads": 6, "kv_heads": 3, "vocab_size": 8192},
    "100m": {
        "hidden": 768, "layers": 12, "ff": 2304, "heads": 12, "kv_heads": 6, "vocab_size": 16384,
    },
}  # fmt: skip
"""As far as they differ from 1m."""


def main(sizes: list[str]) -> None:
    """Print one line for each size."""
    print(machine())
    text = (config_folder() / "models" / "1m.yaml").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="jupiter-bench-") as name:
        for size in sizes:
            shape = parse_model(text)
            shape = type(shape).from_plain(shape.to_plain() | SIZES[size])
            engine = TorchEngine(shape, derive(shape, 1), 0, Group(0, 1), "cpu")
            moments = {
                f"{moment}.{key}": values
                for moment in ("exp_avg", "exp_avg_sq")
                for key, values in engine.weights().items()
            }
            engine.load_moments(moments, 1)
            print(f"{size}: {parameter_count(shape):,} parameters; {_measured(engine, Path(name))}")


def _measured(engine: TorchEngine, folder: Path) -> str:
    store, tokenizer, kept = ArtifactStore(folder / "store"), folder / "tok", folder / "kept"
    tokenizer.mkdir(exist_ok=True)
    state = TrainingState(1, 1, 1, 1, 0.0, "", "", "")
    began_s = time.monotonic()
    save_checkpoint(kept, engine, state, tokenizer, is_synced=False)
    written_s = time.monotonic()
    size_bytes = sum(path.stat().st_size for path in kept.rglob("*") if path.is_file())
    artifact = store.ingest(kept)
    stored_s = time.monotonic()
    assert store.holds(artifact)
    return (
        f"{size_bytes / 1e6:.0f} MB, written in {written_s - began_s:.3f} s, "
        f"hashed and synced in {stored_s - written_s:.3f} s"
    )


if __name__ == "__main__":
    main(sys.argv[1:] or list(SIZES))
