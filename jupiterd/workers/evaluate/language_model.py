"""Scores texts under a language model in a Hugging Face folder: nats of each, and its tokens.

Owns loading, batching and the logarithms, in torch and 32-bit floats, with as many
threads as OMP_NUM_THREADS says. Doesn't know what the scores
are for.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows

from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.data.tokenizer import END_OF_TEXT, encode_batch, load_tokenizer
from jupiterd.workers.evaluate.windows import Window, windows_of

PLAIN_HEADS = frozenset({"qwen3", "llama", "mistral"})
"""Architectures whose logits are the output embedding of the last hidden state and nothing more."""

MAX_CONTEXT = 4096
"""Longer windows cost memory and hardly change a score."""

_LOGIT_ROWS = 256
"""Positions whose logits are held at a time: 4 MB with 4,096 entries, which stays in the cache."""


class LanguageModel:
    """A model and its tokenizer, ready to score."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = load_tokenizer(folder)
        self._model = _load(folder)
        config = self._model.config
        self.vocab_size = int(config.vocab_size)
        self._context = min(int(config.max_position_embeddings), MAX_CONTEXT)
        end = self.tokenizer.token_to_id(END_OF_TEXT)
        self._first = int(_first_of(config.eos_token_id) if end is None else end)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, with no special token."""
        return encode_batch(self.tokenizer, list(texts))

    def is_lossless(self, text: str, ids: list[int]) -> bool:
        """Say whether the ids spell the text; one that loses text would be scored too well."""
        return self.tokenizer.decode(ids, skip_special_tokens=False) == text

    def nats(
        self,
        documents: Sequence[list[int]],
        batch_windows: int,
        on_progress: Callable[[int], None],
    ) -> list[float]:
        """Return -log probability of each document's tokens, the first one after the end mark.

        Args:
            documents: token ids.
            batch_windows: windows that pass through the model together.
            on_progress: told how many documents' worth of tokens are scored.
        """
        streams = [[self._first, *ids] for ids in documents]
        windows = [
            window
            for number, ids in enumerate(documents)
            for window in windows_of(number, len(ids), self._context)
        ]
        # Windows of a length stand together, so that little is computed for padding.
        windows.sort(key=lambda window: window.start - window.stop)
        totals = [0.0] * len(documents)
        for start in range(0, len(windows), batch_windows):
            batch = windows[start : start + batch_windows]
            for window, nats in zip(batch, self._window_nats(batch, streams), strict=True):
                totals[window.document] += nats
            on_progress((start + len(batch)) * len(documents) // len(windows))
        return totals

    def write_on(
        self, prompts: Sequence[str], new_tokens: int, temperature: float, seed: int
    ) -> list[str]:
        """Return what the model writes after each prompt, up to its end mark; a seed decides it."""
        import transformers

        budget = min(new_tokens, self._context // 2)
        rule = transformers.GenerationConfig(
            do_sample=True,
            temperature=temperature,
            top_k=0,
            max_new_tokens=budget,
            eos_token_id=self._first,
            pad_token_id=self._first,
        )
        written: list[str] = []
        for number, ids in enumerate(self.encode(prompts)):
            torch.manual_seed(seed + number)
            fed = torch.tensor([[self._first, *ids][-(self._context - budget) :]])
            made = self._model.generate(
                fed, attention_mask=torch.ones_like(fed), generation_config=rule
            )
            new = made[0, fed.shape[1] :].tolist()
            kept = new[: new.index(self._first)] if self._first in new else new
            written.append(self.tokenizer.decode(kept, skip_special_tokens=False))
        return written

    def _window_nats(self, batch: Sequence[Window], streams: Sequence[list[int]]) -> list[float]:
        longest = max(window.stop - window.start for window in batch)
        inputs = torch.zeros((len(batch), longest), dtype=torch.long)
        targets = torch.full((len(batch), longest), -1, dtype=torch.long)
        for row, window in enumerate(batch):
            stream = streams[window.document]
            fed = torch.tensor(stream[window.start : window.stop + 1], dtype=torch.long)
            inputs[row, : len(fed) - 1] = fed[:-1]
            first = window.score_from - window.start
            targets[row, first : len(fed) - 1] = fed[first + 1 :]
        return self._row_nats(inputs, targets)

    def _row_nats(self, inputs: torch.Tensor, targets: torch.Tensor) -> list[float]:
        """Return the nats of each row; both are [rows, length], a target of -1 is unscored."""
        rows, columns = torch.nonzero(targets >= 0, as_tuple=True)
        wanted = targets[rows, columns]
        sums = torch.zeros(len(inputs), dtype=torch.float64)
        with torch.inference_mode():
            project = self._projector(inputs)
            for start in range(0, len(rows), _LOGIT_ROWS):
                part = slice(start, start + _LOGIT_ROWS)
                logits = project(rows[part], columns[part])
                nats = F.cross_entropy(logits, wanted[part], reduction="none")
                sums.index_add_(0, rows[part], nats.double())
        return [value if math.isfinite(value) else math.inf for value in sums.tolist()]

    def _projector(
        self, inputs: torch.Tensor
    ) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        """Run the model; return what gives the logits [n, vocabulary] at n (row, column) places.

        No attention mask: padding stands at the end, where a causal model doesn't see it.
        """
        if self._model.config.model_type not in PLAIN_HEADS:
            logits = self._model(input_ids=inputs, use_cache=False).logits
            return lambda rows, columns: logits[rows, columns].float()
        hidden = self._model.model(input_ids=inputs, use_cache=False).last_hidden_state
        head = self._model.get_output_embeddings()
        return lambda rows, columns: head(hidden[rows, columns])


def _load(folder: Path) -> Any:  # noqa: ANN401 - transformers' classes have no useful type
    import transformers

    transformers.utils.logging.disable_progress_bar()
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            str(folder), dtype=torch.float32, local_files_only=True, use_safetensors=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise CorruptArtifactError(f"no model can be loaded from {folder.name}: {error}") from error
    return model.eval()


def _first_of(value: int | list[int] | None) -> int:
    if isinstance(value, list):
        return value[0]
    if value is None:
        raise CorruptArtifactError("the model's config names no end-of-text token")
    return value
