"""A scorer in MLX: the same folder, the same windows and the same sums as in torch.

Owns loading it in 32-bit floats and the logarithms. Where the head is plain, only the logits of
scored positions are computed, some at a time; their nats are added up in 64 bits, on the CPU.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map
from numpy.typing import NDArray

from jupiterd.cycle.training.memory import logit_chunk_tokens
from jupiterd.errors import BrokenModelError
from jupiterd.workers.evaluate.text_scorer import PLAIN_HEADS, TextScorer, Tokens
from jupiterd.workers.mlx_folder import loaded_model, read_config

_LOGIT_ROWS = 1024
"""Positions whose logits are held at a time: 128 MB with 32,768 entries."""

Places = NDArray[np.int64]


class MlxLanguageModel(TextScorer):
    """A model and its tokenizer, ready to score."""

    def __init__(self, folder: Path) -> None:
        """Load the model.

        Raises:
            UnknownModelError: mlx-lm doesn't know its architecture.
            BrokenModelError: the folder holds none that can be loaded.
        """
        config = read_config(folder)
        self._model = loaded_model(folder)
        self._model.update(tree_map(_as_fp32, self._model.parameters()))
        self._kind = str(config.get("model_type", ""))
        self._is_tied = bool(config.get("tie_word_embeddings", not hasattr(self._model, "lm_head")))
        try:
            positions = int(config.get("max_position_embeddings") or config["n_positions"])
            vocab_size = int(config["vocab_size"])
        except (KeyError, TypeError, ValueError) as error:
            raise BrokenModelError(f"{folder.name}/config.json lacks {error}") from error
        super().__init__(folder, vocab_size, positions)

    def continued(self, fed: list[int], budget: int, temperature: float, seed: int) -> list[int]:
        """Return at most `budget` tokens drawn one after the other behind those that are fed."""
        from mlx_lm.models.cache import make_prompt_cache

        cache: Any = make_prompt_cache(self._model)
        mx.random.seed(seed)
        generated: list[int] = []
        given = fed
        while len(generated) < budget and (not generated or generated[-1] != self._end):
            logits = self._model(mx.array([given]), cache=cache)[0, -1].astype(mx.float32)
            drawn: Any = mx.random.categorical(logits / temperature)
            generated.append(int(drawn.item()))
            given = generated[-1:]
        return generated

    def row_nats(self, inputs: Tokens, targets: Tokens) -> list[float]:
        """Return the nats of each row; both are [rows, length], a target of -1 is unscored.

        Raises:
            BrokenModelError: a token isn't in the vocabulary; MLX would read beyond its end.
        """
        if inputs.size and max(inputs.max(), targets.max()) >= self.vocab_size:
            raise BrokenModelError("the tokenizer has tokens that the model doesn't know")
        rows, columns = np.nonzero(targets >= 0)
        wanted = targets[rows, columns]
        sums = np.zeros(len(inputs), dtype=np.float64)
        project = self._projector(mx.array(inputs.astype(np.int32)))
        held = min(_LOGIT_ROWS, logit_chunk_tokens(self.vocab_size))
        for start in range(0, len(rows), held):
            part = slice(start, start + held)
            nats = _nats(project(rows[part], columns[part]), wanted[part])
            np.add.at(sums, rows[part], np.array(nats, dtype=np.float64))
        return [float(total) for total in sums]

    def _projector(self, inputs: mx.array) -> Callable[[Places, Places], mx.array]:
        """Run the model; return what gives the logits [n, vocabulary] at n (row, column) places."""
        length = inputs.shape[1]
        if self._kind not in PLAIN_HEADS:
            logits = self._model(inputs)
            width = logits.shape[-1]
            return lambda rows, columns: _at(logits.reshape(-1, width), rows, columns, length)
        hidden = self._model.model(inputs)
        flat = hidden.reshape(-1, hidden.shape[-1])
        head = self._model.model.embed_tokens.as_linear if self._is_tied else self._model.lm_head
        return lambda rows, columns: head(_at(flat, rows, columns, length))


def _at(flat: mx.array, rows: Places, columns: Places, length: int) -> mx.array:
    """Return what stands at these places of something that was [rows, length, ...]."""
    return flat[mx.array((rows * length + columns).astype(np.int32))]


def _nats(logits: mx.array, wanted: Places) -> mx.array:
    """Return -log probability of each wanted token, float[n]; logits: [n, vocabulary]."""
    exact = logits.astype(mx.float32)
    chosen = mx.take_along_axis(exact, mx.array(wanted.astype(np.int32))[:, None], axis=-1)[:, 0]
    return mx.logsumexp(exact, axis=-1) - chosen


def _as_fp32(values: mx.array) -> mx.array:
    return values.astype(mx.float32) if mx.issubdtype(values.dtype, mx.floating) else values
