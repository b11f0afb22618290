"""A scorer in torch: a language model in a Hugging Face folder.

Owns loading it and the logarithms, in 32-bit floats, with as many threads as OMP_NUM_THREADS says.
Doesn't know what the scores are for.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows

from jupiterd.cycle.training.memory import logit_chunk_tokens
from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.evaluate.text_scorer import PLAIN_HEADS, TextScorer, Tokens

_LOGIT_ROWS = 256
"""Positions whose logits are held at a time: 4 MB with 4,096 entries, which stays in the cache."""


class LanguageModel(TextScorer):
    """A model and its tokenizer, ready to score."""

    def __init__(self, folder: Path) -> None:
        """Load the model.

        Raises:
            CorruptArtifactError: the folder holds none that can be loaded.
        """
        self._model = _load(folder)
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
        rows = torch.tensor([fed])
        generated = self._model.generate(
            rows, attention_mask=torch.ones_like(rows), generation_config=rule
        )
        return generated[0, rows.shape[1] :].tolist()

    def row_nats(self, inputs: Tokens, targets: Tokens) -> list[float]:
        """Return the nats of each row; both are [rows, length], a target of -1 is unscored."""
        fed, wanted = torch.from_numpy(inputs), torch.from_numpy(targets)
        rows, columns = torch.nonzero(wanted >= 0, as_tuple=True)
        wanted = wanted[rows, columns]
        sums = torch.zeros(len(fed), dtype=torch.float64)
        with torch.inference_mode():
            project = self._projector(fed)
            held = min(_LOGIT_ROWS, logit_chunk_tokens(self.vocab_size))
            for start in range(0, len(rows), held):
                part = slice(start, start + held)
                logits = project(rows[part], columns[part])
                nats = F.cross_entropy(logits, wanted[part], reduction="none")
                sums.index_add_(0, rows[part], nats.double())
        return sums.tolist()

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
