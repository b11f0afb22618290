"""What torch's engine can be asked for: each way of computing gives the same training."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModelForCausalLM

from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import memory_need
from jupiterd.cycle.training.plan import ModelShape, derive, shape_of_config
from jupiterd.errors import LossDivergedError, UsageError
from jupiterd.workers.tensor_file import save_tensors
from jupiterd.workers.train.checkpoints.checkpoint import (
    OPTIMIZER_FILE,
    STATE_DIR,
    load_moments,
    load_weights,
)
from jupiterd.workers.train.torch import torch_rank
from jupiterd.workers.train.torch.chunked_loss import cross_entropy
from jupiterd.workers.train.torch.loss_scale import FIRST
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.train.torch.torch_model import make_model
from jupiterd.workers.train.torch.torch_optimizer import orthogonal
from jupiterd.workers.training_engine import LOSS_SCALE, MicroBatch
from tests.support.workers.tiny_engine import tiny_engine, tiny_plan, train
from tests.support.workers.tiny_run import SEQ_LEN, VOCAB, TaskAlone, make_inputs, tiny_shape

GPT2 = {
    "architecture": "gpt2", "hidden": 32, "ff": 64, "heads": 2, "kv_heads": 2, "layers": 2,
}  # fmt: skip


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return Path(make_inputs(tmp_path)["shards"])


def largest_difference(first: list[float], second: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(first, second, strict=True))


def task(tmp_path: Path, name: str, plan: Any, shape: ModelShape, **inputs: str) -> TaskAlone:
    params = {"shape": shape.to_plain(), "plan": plan.to_plain(), "round": 1}
    return TaskAlone("train", params, make_inputs(tmp_path) | inputs, tmp_path / name)


def files(folder: Path) -> dict[str, bytes]:
    return {
        name: (folder / name).read_bytes()
        for name in ("model.safetensors", "training_state/optimizer.safetensors")
    }


def test_our_qwen3_computes_what_transformers_computes():
    for changes in ({}, {"tied": False, "heads": 4, "kv_heads": 2}):
        ours = make_model(tiny_shape(**changes), seed=1)
        theirs = AutoModelForCausalLM.from_config(ours.config).eval()
        missing = theirs.load_state_dict(ours.state_dict(), strict=False)
        assert not missing.missing_keys
        ids = torch.randint(0, VOCAB, (3, SEQ_LEN))
        found = ours.hidden(ids) @ ours.output_weight.t()
        torch.testing.assert_close(found, theirs(ids).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("chunk", [1, 7, 40, 1000])
def test_the_chunked_loss_is_the_plain_one(chunk: int):
    torch.manual_seed(0)
    hidden = torch.randn(40, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(30, 8, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, 30, (40,))
    plain = functional.cross_entropy(hidden @ weight.t(), targets, reduction="sum")
    wanted = torch.autograd.grad(plain * 3, (hidden, weight))
    ours = cross_entropy(hidden, weight, targets, torch.float64, chunk)
    found = torch.autograd.grad(ours * 3, (hidden, weight))
    assert float(ours.detach()) == pytest.approx(float(plain.detach()), rel=1e-6)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_accumulating_equals_one_large_batch(shards: Path):
    parts = train(tiny_engine(), shards, micro_batch=1)
    uneven = train(tiny_engine(), shards, micro_batch=4)
    whole = train(tiny_engine(), shards, micro_batch=6)
    assert largest_difference(parts, whole) < 1e-5
    assert largest_difference(uneven, whole) < 1e-5
    assert whole[-1] < whole[0] - 0.1, "and it learns something"


@pytest.mark.parametrize("shape", [tiny_shape(), tiny_shape(**GPT2)], ids=["qwen3", "gpt2"])
def test_checkpointing_changes_nothing_but_memory(shards: Path, shape: ModelShape):
    plain = train(tiny_engine(tiny_plan(gradient_checkpointing="off"), shape), shards)
    saving = train(tiny_engine(tiny_plan(gradient_checkpointing="on"), shape), shards)
    assert plain == saving


def test_checkpointing_keeps_less(shards: Path):
    def kept_bytes(switch: str) -> int:
        sizes: list[int] = []
        engine = tiny_engine(tiny_plan(gradient_checkpointing=switch), tiny_shape(layers=6))
        with torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: sizes.append(tensor.nbytes) or tensor, lambda tensor: tensor
        ):
            engine._loss(torch.zeros(2, SEQ_LEN, dtype=torch.int64), torch.zeros(2, SEQ_LEN).long())
        return sum(sizes)

    assert kept_bytes("on") < kept_bytes("off") / 3


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_every_precision_learns_as_fp32_does(shards: Path, precision: str, optimizer: str):
    exact = train(tiny_engine(tiny_plan(optimizer=optimizer)), shards, steps=10)
    rough = train(tiny_engine(tiny_plan(precision=precision, optimizer=optimizer)), shards, 10)
    assert rough != exact, "it did compute in less"
    assert largest_difference(rough, exact) < 0.1
    assert exact[-1] < exact[0] - 0.3


@pytest.mark.full
def test_weights_in_bf16_lose_no_small_steps(shards: Path):
    exact = train(tiny_engine(tiny_plan(optimizer="muon")), shards, steps=20)
    engine = tiny_engine(tiny_plan(optimizer="muon", weights="bf16"))
    assert largest_difference(train(engine, shards, steps=20), exact) < 0.1
    # At a rate at which bf16 alone would stand still, the weights move all the same.
    before = engine.weights()
    batch = np.zeros((2, SEQ_LEN), dtype=np.int64)
    for _ in range(200):
        engine.step([MicroBatch(batch, batch)], 1e-5)
    moved = [np.abs(v - before[n]).max() for n, v in engine.weights().items() if v.ndim > 1]
    assert min(moved) > 1e-4


def test_on_a_cpu_auto_is_fp32_with_nothing_saved_on():
    options = tiny_engine().options
    assert options.line() == "Precision fp32 | Autocast=OFF | GradScaler=OFF"
    assert (options.gradient_checkpointing, options.attention, options.compile) == (
        False,
        "sdpa",
        False,
    )
    assert options.reasons[0].startswith("precision fp32: this cpu")


def test_a_gradient_that_overflows_fp16_leaves_the_step_out_and_lowers_the_factor(shards: Path):
    engine = tiny_engine(tiny_plan(precision="fp16"))
    before = engine.weights()
    engine._scale.factor = 2.0**60
    batch = np.zeros((2, SEQ_LEN), dtype=np.int64)
    _, norm = engine.step([MicroBatch(batch, batch)], 1e-2)
    assert norm == 0.0
    assert engine._scale.factor == 2.0**59
    assert all(np.array_equal(values, before[n]) for n, values in engine.weights().items())
    engine._scale.factor = FIRST
    assert engine.step([MicroBatch(batch, batch)], 1e-2)[1] > 0
    assert engine.moments()[LOSS_SCALE].tolist() == [FIRST, 1.0, 1.0]


@pytest.mark.parametrize("on_device", [False, True])
def test_a_gradient_that_is_no_number_changes_no_weight(*, on_device: bool):
    engine = tiny_engine()
    engine._leaves_out_on_device = on_device
    before = engine.weights()
    batch = np.zeros((2, SEQ_LEN), dtype=np.int64)
    engine._length = lambda _: torch.tensor(float("nan"), dtype=torch.float64)
    _, norm = engine.step([MicroBatch(batch, batch)], 1e-2)
    assert np.isnan(norm)
    assert all(np.array_equal(values, before[n]) for n, values in engine.weights().items())


def test_a_norm_that_stays_on_the_device_shortens_gradients_as_one_that_was_read(shards: Path):
    read, unread = (tiny_engine(tiny_plan(clip_norm=0.05)) for _ in range(2))
    unread._leaves_out_on_device = True
    assert unread._optimizer.can_leave_out
    assert train(unread, shards, steps=10) == train(read, shards, steps=10)
    for name, values in read.weights().items():
        assert np.array_equal(unread.weights()[name], values), name


@pytest.mark.parametrize("options", [{"optimizer": "muon"}, {"weights": "bf16"}], ids=str)
def test_only_torchs_fused_update_can_leave_a_step_out_by_itself(options: dict[str, str]):
    assert not tiny_engine(tiny_plan(**options))._optimizer.can_leave_out


class ReadNumbers(TorchDispatchMode):
    """Counts how often a number is read from a tensor: on a GPU the host waits for it each time."""

    count = 0

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("micro_batches", [1, 3])
@pytest.mark.parametrize("on_device", [False, True])
def test_a_step_reads_the_loss_and_the_norm_and_nothing_else(
    micro_batches: int, *, on_device: bool
):
    engine = tiny_engine()
    engine._leaves_out_on_device = on_device
    ids = np.ones((2, SEQ_LEN), dtype=np.int64)
    with ReadNumbers() as reads:
        engine.step([MicroBatch(ids, ids)] * micro_batches, 1e-2)
    assert reads.count == 2


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": "muon"},
        {"precision": "bf16"},
        {"precision": "fp16"},
        {"weights": "bf16"},
        {"optimizer": "muon", "weights": "bf16", "gradient_checkpointing": "on"},
    ],
    ids=str,
)
def test_a_resumed_run_is_bit_identical_in_every_way_of_computing(
    tmp_path: Path, options: dict[str, str]
):
    plan, shape = tiny_plan(**options), tiny_shape()
    torch_rank.run(task(tmp_path, "whole", plan, shape))
    half = str(tmp_path / "whole" / "checkpoint-00000003")
    torch_rank.run(task(tmp_path, "resumed", plan, shape, checkpoint=half))
    whole, resumed = (files(tmp_path / n / "checkpoint-00000006") for n in ("whole", "resumed"))
    assert whole == resumed


def test_a_steps_left_out_are_not_counted_after_a_resume(tmp_path: Path, shards: Path):
    plan = tiny_plan(precision="fp16")
    first = tiny_engine(plan)
    first._scale.factor = 2.0**60
    train(first, shards, steps=1)
    first._scale.factor = FIRST
    train(first, shards, steps=3)
    second = tiny_engine(plan)
    second.load_weights(first.weights())
    second.load_moments(first.moments(), step=4)
    assert second._optimizer.steps == 3
    assert train(first, shards, steps=2) == train(second, shards, steps=2)


@pytest.mark.parametrize("changes", [{}, {"optimizer": "muon"}])
def test_a_state_whose_steps_were_all_left_out_is_gone_on_from(
    tmp_path: Path, shards: Path, changes: dict[str, str]
):
    plan = tiny_plan(precision="fp16", **changes)
    first, second = tiny_engine(plan), tiny_engine(plan)
    first._scale.factor = 2.0**60
    train(first, shards, steps=1)
    (tmp_path / STATE_DIR).mkdir()
    save_tensors(first.moments(), tmp_path / STATE_DIR / OPTIMIZER_FILE)
    load_moments(tmp_path, second, step=1)
    assert second._optimizer.steps == 0
    first._scale.factor = second._scale.factor = FIRST
    assert train(first, shards, steps=3) == train(second, shards, steps=3)


def test_muons_steps_have_all_directions_of_about_one_length():
    torch.manual_seed(0)
    for shape in ((8, 20), (20, 8), (16, 16)):
        singular = torch.linalg.svdvals(orthogonal(torch.randn(shape)))
        assert 0.3 < float(singular.min()) <= float(singular.max()) < 1.3


def test_gpt2_trains_and_its_checkpoint_is_one_of_transformers(tmp_path: Path):
    shape = tiny_shape(**GPT2)
    finished = torch_rank.run(task(tmp_path, "out", tiny_plan(shape), shape))
    assert finished.counts["parameters"] == parameter_count(shape)
    folder = tmp_path / "out" / "checkpoint-00000006"
    theirs, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert theirs.config.model_type == "gpt2"
    ours = tiny_engine(shape=shape)
    load_weights(folder, ours)
    ids = torch.randint(0, VOCAB, (2, SEQ_LEN))
    found = ours._model.hidden(ids) @ ours._model.output_weight.t()
    torch.testing.assert_close(found, theirs.eval()(ids).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma2", "gpt_neox"])
def test_any_causal_language_model_of_transformers_trains(tmp_path: Path, shards: Path, kind: str):
    sizes = {"vocab_size": VOCAB, "num_hidden_layers": 2, "num_attention_heads": 2}
    more = {"hidden_size": 32, "intermediate_size": 48, "num_key_value_heads": 1, "head_dim": 16}
    theirs = {"n_embd": 32, "n_layer": 2, "n_head": 2} if kind == "gpt2" else sizes | more
    config = (
        AutoConfig.for_model(kind, **theirs, vocab_size=VOCAB)
        if kind == "gpt2"
        else (AutoConfig.for_model(kind, **theirs))
    )
    shape = shape_of_config(kind, config.to_dict(), tiny_shape().recipe)
    shape = shape.model_copy(update={"seq_len": SEQ_LEN})
    losses = train(tiny_engine(tiny_plan(shape), shape), shards)
    assert losses[-1] < losses[0] - 0.1
    torch_rank.run(task(tmp_path, "out", tiny_plan(shape), shape))
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "out" / "checkpoint-00000006")


def test_weights_come_from_a_folder_that_transformers_wrote_in_bf16_and_in_parts(tmp_path: Path):
    config = make_model(tiny_shape(), 0).config
    theirs = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    theirs.save_pretrained(tmp_path / "theirs", max_shard_size="20KB")
    assert len(list((tmp_path / "theirs").glob("*.safetensors"))) > 1
    ours = tiny_engine()
    load_weights(tmp_path / "theirs", ours)
    for name, values in theirs.named_parameters():
        assert np.array_equal(ours.weights()[name], values.detach().float().numpy()), name


def test_no_remote_code_is_run(tmp_path: Path):
    config = {
        "model_type": "ours", "auto_map": {"AutoConfig": "evil.Config"}, "vocab_size": 300,
        "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "n_positions": 16,
    }  # fmt: skip
    with pytest.raises(UsageError, match="no causal language model is known by that name"):
        shape_of_config("strange", config, tiny_shape().recipe)
    known = shape_of_config("strange", config | {"model_type": "llama"}, tiny_shape().recipe)
    assert type(tiny_engine(shape=known)._model.inner).__module__.startswith("transformers.")


def test_what_the_device_cannot_do_is_refused_with_a_hint():
    with pytest.raises(UsageError, match="has no flash-attn") as caught:
        tiny_engine(tiny_plan(attention="flash"))
    assert "sdpa" in caught.value.hint


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # torch's compiler uses what torch retires
@pytest.mark.full
def test_compiled_it_computes_the_same(shards: Path):
    shape = tiny_shape(layers=1)
    compiled = tiny_engine(tiny_plan(shape, compile="on"), shape)
    assert compiled.options.compile
    plain = train(tiny_engine(shape=shape), shards, steps=2)
    assert largest_difference(train(compiled, shards, steps=2), plain) < 1e-4


def test_a_run_that_diverges_names_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole, steps = TorchEngine.step, iter(range(100))

    def breaking(self: TorchEngine, *arguments: Any) -> tuple[float, float]:
        share, norm = whole(self, *arguments)
        return (float("nan") if next(steps) == 4 else share), norm

    monkeypatch.setattr(TorchEngine, "step", breaking)
    with pytest.raises(LossDivergedError, match=r"step 4; the last good .* checkpoint-00000003"):
        torch_rank.run(task(tmp_path, "out", derive(tiny_shape(), 1), tiny_shape()))


def test_the_memory_of_activations_is_what_the_plan_says():
    shape = tiny_shape(hidden=128, layers=4, ff=384, head_dim=64, vocab_size=512, seq_len=256)
    plan = tiny_plan(shape, micro_batch_sequences=2)
    engine = tiny_engine(plan, shape)
    own = {p.untyped_storage().data_ptr() for p in engine._model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    ids = torch.zeros(2, 256, dtype=torch.int64)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        engine._loss(ids, ids)
    cpu = DeviceAbilities("torch", "cpu", 0)
    need = memory_need(shape, plan, "fp32", gradient_checkpointing=False, device=cpu)
    assert sum(kept.values()) == pytest.approx(need.activations, rel=0.05)
