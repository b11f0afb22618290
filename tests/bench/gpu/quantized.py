"""Adapters beside weights that bitsandbytes quantizes: what a card computes, and what it takes.

Owns the measurement, beside the same losses on the CPU. Doesn't know how matrices are quantized.
"""

from collections.abc import Iterator
from importlib.util import find_spec

from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.workers.train.architectures.skeleton import skeleton
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.model_config import model_config
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.bench.gpu.row import Row
from tests.support.workers.tiny_engine import tiny_plan
from tests.support.workers.tiny_run import tiny_shape
from tests.unit.workers.train.architectures.test_mlx_models import batch

CARD = "cuda"
STEPS, RATE = 20, 5e-3
WIDTH = 256
KINDS = ("4bit", "8bit")


def rows(card: str = CARD) -> Iterator[Row]:
    """Yield how far losses on a card lie from the CPU's, and the memory of quantized weights."""
    if find_spec("bitsandbytes") is None:
        yield Row("quantized bases", None, note="pip install 'jupiterd[quantized]'")
        return
    whole = _engine(card, "none").memory_used_bytes()
    for kind in KINDS:
        engine = _engine(card, kind)
        taken = engine.memory_used_bytes()
        ours, theirs = losses(engine), losses(_engine("cpu", kind))
        apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        yield Row(f"losses beside {kind} weights", apart, "nats from the CPU's", note="fp32")
        yield Row(f"memory beside {kind} weights", taken / 2**20, "MiB", whole / 2**20)


def shape() -> ModelShape:
    """Return a model whose matrices are what takes memory."""
    return tiny_shape(hidden=WIDTH, ff=4 * WIDTH, heads=4, kv_heads=2, head_dim=64, layers=4)


def engine_of(plan: TrainPlan, device: str) -> TorchEngine:
    """Return an engine beside weights that a seed draws."""
    engine = TorchEngine(shape(), plan, 0, ProcessGroup(0, 1), device)
    engine.load_base(first_weights(skeleton(model_config(shape())).shapes, 7))
    engine.begin(has_same_weights=True)
    return engine


def _engine(device: str, quantize: str) -> TorchEngine:
    adapter = parse_adapter(f"rank=8,quantize={quantize}")
    plan = tiny_plan(shape(), adapter=adapter, precision="fp32", compile="off")
    return engine_of(plan, device)


def losses(engine: TorchEngine) -> list[float]:
    """Return those of some steps on one batch."""
    return [engine.step(batch(), RATE)[0] for _ in range(STEPS)]
