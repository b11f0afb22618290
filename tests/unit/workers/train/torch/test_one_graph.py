"""Model and loss compiled as one graph: it computes the same, keeps no logits, and stays one."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch._dynamo.utils import counters
from transformers import AutoConfig

from jupiterd.cycle.training.plan import ModelShape, shape_of_config
from jupiterd.processes.environment import GRAPH_CACHE
from jupiterd.workers.train.torch import loss_model
from jupiterd.workers.train.torch.causal_mask import mask_unless_causal
from jupiterd.workers.train.torch.loss_model import LossModel
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.training_engine import MicroBatch
from tests.support.workers.tiny_engine import tiny_engine, tiny_plan, train
from tests.support.workers.tiny_run import SEQ_LEN, VOCAB, make_inputs, tiny_shape

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # torch's compiler uses what torch retires

CHUNK = 5
"""Tokens whose logits exist at a time: no divisor of a micro batch's."""

KINDS = ("qwen3", "gpt2", "llama", "gemma2")
"""Ours, two whose output is a product, and one that caps its logits."""


def shape_of(kind: str) -> ModelShape:
    if kind == "qwen3":
        return tiny_shape(layers=1)
    sizes: dict[str, Any] = {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "head_dim": 16,
        "num_attention_heads": 2, "num_key_value_heads": 1, "final_logit_softcapping": 5.0,
    }  # fmt: skip
    if kind == "gpt2":
        sizes = {"n_embd": 32, "n_layer": 1, "n_head": 2}
    config = AutoConfig.for_model(kind, vocab_size=VOCAB, **sizes).to_dict()
    shape = shape_of_config(kind, config, tiny_shape().recipe)
    return shape.model_copy(update={"seq_len": SEQ_LEN})


def engine_of(kind: str, **options: Any) -> TorchEngine:
    shape = shape_of(kind)
    engine = tiny_engine(tiny_plan(shape, **options), shape)
    engine._scored.chunk_tokens = CHUNK
    return engine


@pytest.fixture
def graphs(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CompileCounterWithBackend]:
    """Count graphs, and compute them by torch's own kernels: compiling to C++ takes minutes.

    param: `aot_eager` traces the backward pass as well, and splits both as the compiler does
    """
    torch.compiler.reset()
    counter = CompileCounterWithBackend(getattr(request, "param", "eager"))
    monkeypatch.setattr(loss_model.torch, "compile", partial(torch.compile, backend=counter))
    yield counter
    torch.compiler.reset()


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return Path(make_inputs(tmp_path)["shards"])


def ids_of(sequences: int) -> Tensor:
    torch.manual_seed(sequences)
    return torch.randint(0, VOCAB, (sequences, SEQ_LEN))


def gradients(engine: TorchEngine, ids: Tensor) -> dict[str, Tensor]:
    engine._forget_gradients()
    engine._loss(ids, ids.roll(-1, 1)).backward()
    found = {n: p.grad for n, p in engine._parameters.items() if p.grad is not None}
    return {name: gradient.clone() for name, gradient in found.items()}


@pytest.mark.parametrize("graphs", ["aot_eager"], indirect=True)
@pytest.mark.parametrize("kind", KINDS)
def test_model_and_loss_are_one_graph_with_the_gradients_of_none(
    kind: str, graphs: CompileCounterWithBackend
):
    compiled, plain = engine_of(kind, compile="on"), engine_of(kind)
    for _ in range(2):
        found, wanted = (gradients(engine, ids_of(2)) for engine in (compiled, plain))
        assert found.keys() == wanted.keys()
        for name, gradient in found.items():
            torch.testing.assert_close(gradient, wanted[name], atol=1e-4, rtol=1e-5)
    assert graphs.frame_count == 1, "and a second micro batch makes no other"


def test_layers_that_are_computed_twice_are_in_the_graph_too(graphs: CompileCounterWithBackend):
    compiled = engine_of("qwen3", compile="on", gradient_checkpointing="on")
    found, wanted = (gradients(engine, ids_of(2)) for engine in (compiled, engine_of("qwen3")))
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, wanted[name], atol=1e-4, rtol=1e-5)
    assert graphs.frame_count == 1


@pytest.mark.parametrize("kind", ["qwen3", "gpt2"])
def test_documents_are_kept_apart_in_the_graph(kind: str, graphs: CompileCounterWithBackend):
    ids, documents = ids_of(2), torch.arange(SEQ_LEN).div(4, rounding_mode="floor").expand(2, -1)
    found = [
        engine_of(kind, document_masks="on", compile=switch)._loss(ids, ids, documents).item()
        for switch in ("on", "off")
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    assert engine_of(kind)._loss(ids, ids).item() != pytest.approx(found[0], rel=1e-6)
    assert graphs.frame_count == 1


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_no_causal_mask_is_made_in_the_graph_of_a_model_of_transformers(
    kind: str, graphs: CompileCounterWithBackend
):
    gradients(engine_of(kind, compile="on"), ids_of(2))
    nodes = graphs.graphs[0].graph.nodes
    calls = [node for node in nodes if "scaled_dot_product" in str(node.target)]
    assert len(calls) == 1
    assert calls[0].kwargs["attn_mask"] is None
    assert calls[0].kwargs["is_causal"]


@pytest.mark.parametrize(
    ("changes", "is_left_out"),
    [
        ({}, True),
        ({"local_size": 9}, True),
        ({"local_size": 8}, False),
        ({"q_length": 1}, False),
        ({"allow_is_causal_skip": False}, False),
        ({"attention_mask": torch.ones(1, 8, dtype=torch.bool).tril()}, False),
    ],
    ids=str,
)
def test_a_mask_is_left_out_where_the_kernels_causal_one_is_the_same(
    changes: dict[str, Any], *, is_left_out: bool
):
    given = {"batch_size": 1, "q_length": 8, "kv_length": 8, "allow_is_causal_skip": True}
    found = mask_unless_causal(**(given | changes))
    if is_left_out:
        assert found is None
    elif found is not None:  # transformers may leave it out as well, once it has looked at it
        assert found.shape[-2:] == ((given | changes)["q_length"], 8)


def test_batches_of_many_sizes_get_two_graphs_and_one_for_any_size(
    graphs: CompileCounterWithBackend,
):
    compiled, plain = engine_of("qwen3", compile="on"), engine_of("qwen3")
    frames: list[int] = []
    for sequences in (3, 4, 2, 5, 7, 3, 4, 8):
        found, wanted = (gradients(engine, ids_of(sequences)) for engine in (compiled, plain))
        for name, gradient in found.items():
            torch.testing.assert_close(gradient, wanted[name], atol=1e-4, rtol=1e-5)
        frames.append(graphs.frame_count)
    assert frames[:2] == [1, 2], "each of the first two sizes has a graph"
    assert frames[4] == frames[-1], "and the sixth compiles nothing any more"


def test_a_rank_whose_share_changes_compiles_the_body_alone(graphs: CompileCounterWithBackend):
    engine = engine_of("qwen3", compile="on")
    shared = LossModel(engine._model, engine.options, "cpu", CHUNK, is_shared=True)
    wanted = engine_of("qwen3")._loss(ids_of(2), ids_of(2))
    torch.testing.assert_close(shared(ids_of(2), ids_of(2)), wanted)
    assert graphs.frame_count == 3, "the body, and the error of a whole chunk and of the last one"


def test_targets_that_count_may_be_of_any_number(graphs: CompileCounterWithBackend):
    engines = [engine_of("qwen3", compile=switch) for switch in ("on", "off")]
    ids = ids_of(2).numpy()
    for count in (0, 3, 7, 11, 12):
        counted = np.arange(ids.size).reshape(ids.shape) < count
        batch = MicroBatch(ids, ids, None, counted, 20)
        found, wanted = (engine._accumulate([batch]).item() for engine in engines)
        assert found == pytest.approx(wanted, abs=1e-5)
        assert (found > 0) == (count > 0)
    assert not engines[0]._scored._shapes, "no graph of one size was made"


@pytest.mark.parametrize("kind", ["qwen3", "gpt2"])
def test_twenty_steps_in_one_graph_have_the_losses_of_none(
    kind: str, graphs: CompileCounterWithBackend, shards: Path
):
    compiled, plain = (train(engine_of(kind, compile=s), shards, 20) for s in ("on", "off"))
    assert np.abs(np.subtract(compiled, plain)).max() < 1e-4
    assert graphs.frame_count == 1


@pytest.mark.slow
@pytest.mark.long  # test_compiled_it_computes_the_same shows it, too
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["qwen3", "gpt2"])
def test_kernels_of_the_compiler_have_the_losses_of_torchs_own(kind: str, shards: Path):
    compiled, plain = (train(engine_of(kind, compile=s), shards, 20) for s in ("on", "off"))
    assert np.abs(np.subtract(compiled, plain)).max() < 1e-4


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_graph_never_holds_all_logits():
    shape = tiny_shape(layers=1, vocab_size=4096, seq_len=512)
    engine = tiny_engine(tiny_plan(shape, compile="on"), shape)
    engine._scored.chunk_tokens = 512
    ids = torch.randint(0, 4096, (8, 512))
    whole = 4 * ids.numel() * 4096

    def step() -> None:
        engine._loss(ids, ids).backward()

    step()
    assert peak_bytes(step) < whole / 2


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_later_worker_finds_the_graph_unless_its_chunks_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(GRAPH_CACHE, str(tmp_path))

    def found_on_disk(chunk: int) -> bool:
        torch.compiler.reset()
        counters.clear()
        engine = engine_of("qwen3", compile="on", precision="bf16")
        engine._scored.chunk_tokens = chunk
        gradients(engine, ids_of(2))
        traced = counters["aot_autograd"]
        assert traced["autograd_cache_hit"] + traced["autograd_cache_miss"] == 1, "it may be kept"
        return traced["autograd_cache_hit"] == 1

    assert [found_on_disk(chunk) for chunk in (16, 16, 32, 16)] == [False, True, False, True]


def peak_bytes(work: Callable[[], None]) -> int:
    """Return what torch's allocator had handed out at the most, beside what was there before."""
    with torch.profiler.profile(profile_memory=True) as found:
        work()
    events = found.profiler.kineto_results.events()  # pyright: ignore[reportOptionalMemberAccess]
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    return int(np.cumsum([size for _, size in changes]).max())
