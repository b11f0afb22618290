"""Tokens per second of our training loop, beside a plain loop with model and loss in one graph.

Owns the shapes that are measured. MFU is PaLM's count (2204.02311, appendix B) over the peak of the
card's data sheet.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from jupiterd.cycle.training.memory import LOGIT_CHUNK_TOKENS, flops_per_token
from jupiterd.cycle.training.peak_flops import peak_flops_per_s, utilisation
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.workers.train.torch.loss_model import LossModel
from jupiterd.workers.train.torch.torch_model import CausalModel, make_model
from tests.bench.gpu.gpu_clock import seconds_of
from tests.bench.gpu.row import Row
from tests.bench.train.plain_loop import NanoGpt
from tests.bench.train.single import ours, preset, step_of, write_shards

WARM_STEPS, STEPS = 5, 15
SEQ_LEN = 1024


@dataclass(frozen=True)
class Shape:
    """A model, and how many sequences one step takes."""

    name: str
    model: ModelShape
    sequences: int


def gpt2_124m() -> ModelShape:
    """Return GPT-2's smallest model."""
    sizes = {"hidden": 768, "layers": 12, "heads": 12, "kv_heads": 12, "ff": 3072}
    sizes["vocab_size"] = 50257
    return preset("100m").model_copy(update={"architecture": "gpt2", **sizes})


SHAPES = {
    "100m": lambda: Shape("100m", preset("100m"), 64),
    "GPT-2": lambda: Shape("GPT-2 124M", gpt2_124m(), 32),
    "350m": lambda: Shape("350m", preset("350m"), 16),
    "1b": lambda: Shape("1b", preset("1b"), 8),
}


def rows(name: str) -> Iterator[Row]:
    """Yield ours and the plain loop's tokens/s for one shape."""
    shape = SHAPES[name]()
    with tempfile.TemporaryDirectory() as folder:
        write_shards(Path(folder) / "shards", shape.model)
        yield from compared(shape, Path(folder) / "shards")


def compared(shape: Shape, shards: Path) -> Iterator[Row]:
    """Yield ours, and once the plain loop is measured, too, both."""
    batch = 1, shape.sequences, SEQ_LEN
    rate, note = our_rate(shape.model, shards, batch)
    own = Row(f"{shape.name}, {shape.sequences} x {SEQ_LEN}", rate, "tokens/s", note=note)
    yield own
    step_s = seconds_of(PlainStep(shape), STEPS, WARM_STEPS)
    yield replace(own, other=shape.sequences * SEQ_LEN / step_s)


def graph_rows() -> Iterator[Row]:
    """Yield the tokens/s of 100m as it is, with other chunks, and compiled in two parts."""
    shape = SHAPES["100m"]()
    with tempfile.TemporaryDirectory() as folder:
        shards = Path(folder) / "shards"
        write_shards(shards, shape.model)
        for name, change in GRAPHS.items():
            rate, note = our_rate(shape.model, shards, (1, shape.sequences, SEQ_LEN), change)
            yield Row(f"100m, {name}", rate, "tokens/s", note=note)


def _with_chunks(loss: LossModel, tokens: int) -> None:
    loss.chunk_tokens = tokens


def _in_two_parts(loss: LossModel) -> None:
    loss._whole, loss.chunk_tokens = None, LOGIT_CHUNK_TOKENS


GRAPHS: dict[str, Callable[[LossModel], None]] = {
    "as it is": lambda _: None,
    "body and loss compiled apart, as before": _in_two_parts,
    "one graph, 8192 tokens at a time": partial(_with_chunks, tokens=8192),
    "one graph, 16384 tokens at a time": partial(_with_chunks, tokens=16_384),
    "one graph, all tokens at once": partial(_with_chunks, tokens=64 * SEQ_LEN),
}
"""How model and loss are compiled, and how many tokens' logits exist at a time."""


def our_rate(
    model: ModelShape,
    shards: Path,
    batch: tuple[int, int, int],
    change: Callable[[LossModel], None] = lambda _: None,
) -> tuple[float, str]:
    """Return tokens/s of our loop, with MFU and memory as a note."""
    torch.cuda.reset_peak_memory_stats()
    torch.compiler.reset()  # or the next batch size would be compiled for any size, which is slower
    step = step_of(ours(model, shards, batch, "cuda", change), WARM_STEPS, STEPS)
    rate = batch[0] * batch[1] * batch[2] / step.clock_s
    peak = peak_flops_per_s(torch.cuda.get_device_name())
    share = utilisation(rate, flops_per_token(model), peak)
    memory = f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB"
    torch.cuda.empty_cache()
    return rate, memory if share is None else f"MFU {share:.1%}, {memory}"


class PlainStep:
    """One step of a plain loop: autocast, fused AdamW, clipped gradients, no accumulation."""

    def __init__(self, shape: Shape) -> None:
        model = plain_model(shape.model).to("cuda")
        self._parameters = list(model.parameters())
        self._optimizer = torch.optim.AdamW(self._parameters, lr=1e-3, fused=True)
        self._loss = torch.compile(LossOf(model))
        size = (shape.sequences, SEQ_LEN + 1)
        self._tokens = torch.randint(shape.model.vocab_size, size, device="cuda")

    def __call__(self) -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = self._loss(self._tokens[:, :-1], self._tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)


class LossOf(nn.Module):
    """A model and the mean cross-entropy of all its logits, for one graph."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        """Return the loss; ids and targets: int64[sequences, tokens]."""
        logits = self.model(ids).float()
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class WholeLogits(nn.Module):
    """Our own model, with all its logits at once."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.model = make_model(shape, 0)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits [sequences, tokens, vocabulary]."""
        model = cast("CausalModel", self.model)
        return functional.linear(model.hidden(ids), model.output_weight)


def plain_model(shape: ModelShape) -> nn.Module:
    """Return nanoGPT's model for GPT-2's shape, and ours for others."""
    if shape.architecture == "gpt2":
        return NanoGpt(shape.vocab_size, SEQ_LEN, shape.hidden, shape.layers, shape.heads)
    return WholeLogits(shape)
