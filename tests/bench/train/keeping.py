"""What it costs to keep the last finished step: written by the rank, hashed and synced by its node.

python -m tests.bench.train.keeping [SIZE...]
"""

import sys
import tempfile
import time
from pathlib import Path

from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.plan import derive, parse_model
from jupiterd.locations import config_folder
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.workers.train.checkpoints.checkpoint import TrainingState, snapshot, write
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.bench.figure import machine

SIZES = ("1m", "25m", "100m")


def main(sizes: list[str]) -> None:
    """Print one line for each size."""
    print(machine())
    with tempfile.TemporaryDirectory(prefix="jupiter-bench-") as name:
        for size in sizes:
            preset = config_folder() / "models" / f"{size}.yaml"
            shape = parse_model(preset.read_text(encoding="utf-8"))
            engine = TorchEngine(shape, derive(shape, 1), 0, ProcessGroup(0, 1), "cpu")
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
    write(snapshot(engine, state), kept, tokenizer, is_synced=False)
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
