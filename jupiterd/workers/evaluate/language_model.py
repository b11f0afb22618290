"""A scorer in torch: a language model in a Hugging Face folder.

Owns loading it and the logarithms, in 32-bit floats, on the device that its worker has. On a CPU it
has as many threads as torch. Doesn't know what the scores are for.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows

from jupiterd.adapter_folder import base_beside
from jupiterd.cycle.training.memory import logit_chunk_tokens
from jupiterd.errors import BrokenModelError
from jupiterd.workers.adapters.torch_merge import merge
from jupiterd.workers.evaluate.computing_threads import side_by_side
from jupiterd.workers.evaluate.device_room import (
    CPU,
    CPU_BATCH_TOKENS,
    CUDA,
    free_bytes,
    full_precision,
    gpu_batch_tokens,
    placed,
    token_bytes,
    usable_device,
)
from jupiterd.workers.evaluate.head_nats import CPU_BLOCK, HeadBlock, gpu_block, head_nats
from jupiterd.workers.evaluate.text_scorer import (
    PLAIN_HEADS,
    USUAL_WINDOWS,
    TextScorer,
    Tokens,
    share_of,
)
from jupiterd.workers.evaluate.windows import BatchSize, Window

_LOGIT_ROWS = 256
"""Positions whose nats are computed at a time where a model gives whole logits."""

_LENGTH_DEPENDENT = frozenset({"dynamic", "longrope"})
"""Kinds of rotary embedding that a model keeps for the length that it saw last: no two batches may
pass through it at a time."""


class LanguageModel(TextScorer):
    """A model and its tokenizer, ready to score."""

    def __init__(self, folder: Path, device: str = CPU) -> None:
        """Load the model.

        device: such as `cuda:0`; the CPU in place of one that torch can't use or that is full

        Raises:
            BrokenModelError: the folder holds none that can be loaded.
        """
        self._model = _load(folder)
        self.device = placed(self._model, usable_device(device))
        config = self._model.config
        super().__init__(folder, int(config.vocab_size), int(config.max_position_embeddings))

    def continued(self, fed: list[int], budget: int, temperature: float, seed: int) -> list[int]:
        """Return at most `budget` tokens drawn one after the other behind those that are fed."""
        import transformers

        rule = transformers.GenerationConfig(
            do_sample=True,
            temperature=temperature,
            top_k=0,
            max_new_tokens=budget,
            eos_token_id=self._end,
            pad_token_id=self._end,
        )
        torch.manual_seed(seed)
        rows = torch.tensor([fed], device=self.device)
        with full_precision():
            generated = self._model.generate(
                rows, attention_mask=torch.ones_like(rows), generation_config=rule
            )
        return generated[0, rows.shape[1] :].tolist()

    def batch_size(self, batch_windows: int) -> BatchSize:
        """Return what fills the device, by tokens; fewer windows than usual are for less memory."""
        tokens = share_of(self._batch_tokens(), batch_windows)
        return BatchSize(tokens if batch_windows >= USUAL_WINDOWS else batch_windows, tokens)

    def results(
        self,
        batches: Sequence[list[Window]],
        score: Callable[[list[Window]], list[float]],
        batch_windows: int,
    ) -> Iterator[list[float]]:
        """Yield what `score` returns of each batch, in their order; on a CPU several at a time.

        Fewer than usual where memory ran out: a single long window may be larger than a batch.
        """
        most = share_of(self._at_a_time(batches), batch_windows)
        with full_precision():
            yield from side_by_side(score, batches, most)

    def row_nats(self, inputs: Tokens, targets: Tokens) -> list[float]:
        """Return the nats of each row; both are [rows, length], a target of -1 is unscored."""
        rows, columns = np.nonzero(targets >= 0)
        wanted = self._moved(targets[rows, columns])
        with torch.inference_mode():
            nats = self._nats(self._moved(inputs), self._moved(rows), self._moved(columns), wanted)
        weights = nats.double().cpu().numpy()
        return np.bincount(rows, weights=weights, minlength=len(inputs)).tolist()

    def _nats(
        self, fed: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, wanted: torch.Tensor
    ) -> torch.Tensor:
        """Return the nats of what is wanted at these places, float32[n].

        No attention mask: padding stands at the end, where a causal model doesn't see it.
        """
        if self._has_plain_head:
            hidden = self._model.model(input_ids=fed, use_cache=False).last_hidden_state
            head = self._model.get_output_embeddings()
            return head_nats(hidden[rows, columns], head, wanted, self._block())
        logits = self._model(input_ids=fed, use_cache=False).logits
        held = min(_LOGIT_ROWS, logit_chunk_tokens(self.vocab_size))
        parts = zip(rows.split(held), columns.split(held), wanted.split(held), strict=True)
        found = [
            F.cross_entropy(logits[row, column].float(), ids, reduction="none")
            for row, column, ids in parts
        ]
        return torch.cat(found) if found else logits.new_zeros(0)

    @property
    def _has_plain_head(self) -> bool:
        return self._model.config.model_type in PLAIN_HEADS

    def _block(self) -> HeadBlock:
        if self.device.type != CUDA:
            return CPU_BLOCK
        return gpu_block(self.vocab_size, free_bytes(self.device))

    def _moved(self, values: Tokens) -> torch.Tensor:
        return torch.from_numpy(values).to(self.device)

    def _batch_tokens(self) -> int:
        if self.device.type != CUDA:
            return CPU_BATCH_TOKENS
        config = self._model.config
        width = int(config.hidden_size)
        inner = int(getattr(config, "intermediate_size", None) or 4 * width)
        logits = 0 if self._has_plain_head else self.vocab_size
        return gpu_batch_tokens(free_bytes(self.device), token_bytes(width, inner, logits))

    def _at_a_time(self, batches: Sequence[list[Window]]) -> int:
        """Return how many batches may be computed at a time: whole logits would fill the memory."""
        if self.device.type == CUDA or not self._has_plain_head or not batches:
            return 1
        rope = getattr(self._model.config, "rope_parameters", None) or {}
        return 1 if rope.get("rope_type") in _LENGTH_DEPENDENT else torch.get_num_threads()


def _load(folder: Path) -> Any:  # noqa: ANN401 - transformers' classes have no useful type
    import transformers

    transformers.utils.logging.disable_progress_bar()
    base = base_beside(folder)
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            str(base or folder), dtype=torch.float32, local_files_only=True, use_safetensors=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise BrokenModelError(f"no model can be loaded from {folder.name}: {error}") from error
    if base is not None:
        merge(model, folder)
    return model.eval()
