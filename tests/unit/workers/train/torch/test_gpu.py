"""What needs a CUDA device: bf16, flash attention, compiled kernels, and NCCL with one GPU."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.errors import NcclFailedError
from jupiterd.workers.train.torch.nccl import meet_over_nccl
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.training_engine import MicroBatch
from tests.bench.gpu import quantized
from tests.support.workers.tiny_engine import tiny_engine, tiny_plan, train
from tests.support.workers.tiny_run import SEQ_LEN, make_inputs, tiny_shape
from tests.unit.workers.train.torch.test_nccl import meeting
from tests.unit.workers.train.torch.test_rank_store import in_process

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device"),
]

WIDE = tiny_shape(head_dim=32, heads=4, kv_heads=2)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return Path(make_inputs(tmp_path)["shards"])


def losses(shards: Path, **options: str) -> list[float]:
    return train(tiny_engine(tiny_plan(WIDE, **options), WIDE, "cuda"), shards, steps=10)


def largest_difference(first: list[float], second: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(first, second, strict=True))


def test_fp32_is_what_a_cpu_computes(shards: Path):
    cpu = train(tiny_engine(tiny_plan(WIDE), WIDE), shards, steps=10)
    assert largest_difference(losses(shards, precision="fp32", compile="off"), cpu) < 1e-3


def test_auto_is_bf16_and_learns_as_fp32_does(shards: Path):
    assert tiny_engine(tiny_plan(WIDE), WIDE, "cuda").options.precision == "bf16"
    exact = losses(shards, precision="fp32", compile="off")
    assert largest_difference(losses(shards, compile="off"), exact) < 0.1


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_fp16_with_its_scaler_learns_as_fp32_does(shards: Path, optimizer: str):
    exact = losses(shards, precision="fp32", compile="off", optimizer=optimizer)
    rough = losses(shards, precision="fp16", compile="off", optimizer=optimizer)
    assert largest_difference(rough, exact) < 0.1


@pytest.mark.skipif(find_spec("flash_attn") is None, reason="flash-attn isn't installed")
def test_flash_attention_is_torchs_attention(shards: Path):
    ours = losses(shards, attention="flash", compile="off")
    assert largest_difference(ours, losses(shards, attention="sdpa", compile="off")) < 0.05


def test_micro_batches_never_wait_for_the_device():
    engine = tiny_engine(tiny_plan(WIDE, compile="off"), WIDE, "cuda")
    ids = np.ones((2, SEQ_LEN), dtype=np.int64)
    batches = [MicroBatch(ids, ids)] * 3
    engine.step(batches, 1e-3)
    torch.cuda.set_sync_debug_mode("error")
    try:
        engine._accumulate(batches)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_it_computes_the_same(shards: Path):
    assert largest_difference(losses(shards, compile="on"), losses(shards, compile="off")) < 0.05


def test_a_gang_meets_over_nccl_and_agrees_on_the_device():
    store = in_process()  # Python's, which NCCL's threads ask
    given_up: list[NcclFailedError] = []
    meet_over_nccl(meeting(store), "cuda:0", given_up.append)
    try:
        group = ProcessGroup(0, 2, "nccl", "cuda:0")  # two in its own eyes, so that it sums
        assert group.gather([1.5, 2.0]) == [[1.5, 2.0], [0.0, 0.0]]
        assert given_up == []
    finally:
        torch.distributed.destroy_process_group()


def test_nccl_with_one_gpu_sums_and_shares_gradients(tmp_path: Path):
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
    try:
        ones = torch.ones(4, device="cuda")
        torch.distributed.all_reduce(ones)
        assert ones.tolist() == [1.0] * 4
        engine = tiny_engine(tiny_plan(WIDE, precision="fp32", compile="off"), WIDE, "cuda")
        shared = torch.nn.parallel.DistributedDataParallel(engine._loss, device_ids=[0])
        ids = torch.zeros(2, 16, dtype=torch.int64, device="cuda")
        shared(ids, ids).backward()
        assert all(p.grad is not None for p in engine._parameters.values())
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="needs the extra quantized")
@pytest.mark.parametrize("kind", ["4bit", "8bit"])
@pytest.mark.parametrize(("precision", "off"), [("fp32", 1e-3), ("bf16", 0.05)])
def test_beside_quantized_weights_it_learns_as_a_cpu_does(kind: str, precision: str, off: float):
    plan = tiny_plan(
        quantized.shape(),
        adapter=parse_adapter(f"rank=8,quantize={kind}"),
        precision=precision,
        compile="off",
    )
    found, wanted = (quantized.losses(quantized.engine_of(plan, d)) for d in ("cuda", "cpu"))
    assert largest_difference(found, wanted) < off
