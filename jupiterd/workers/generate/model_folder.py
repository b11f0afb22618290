"""A model folder opened for writing text: any causal model that transformers knows.

Owns loading both the model and its tokenizer. Doesn't know what is written with them. Code that
comes with a model is never run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.data.tokenizer import END_OF_TEXT, load_tokenizer


@dataclass(frozen=True)
class Generator:
    """A model that can write."""

    model: Any
    """A transformers causal model, in evaluation mode."""
    tokenizer: Tokenizer
    end_token: int
    """Ends a text, and fills the rows of a batch that are shorter."""
    max_tokens: int
    """Prompt and text together."""


def open_generator(folder: Path) -> Generator:
    """Load a Hugging Face model folder.

    Raises:
        CorruptArtifactError: the folder is incomplete or can't be read.
    """
    tokenizer = load_tokenizer(folder)
    try:
        model = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, attn_implementation="sdpa"
        )
    except (OSError, ValueError, KeyError) as error:
        raise CorruptArtifactError(f"no model can be read from {folder.name}: {error}") from error
    end_token = tokenizer.token_to_id(END_OF_TEXT)
    if end_token is None:
        end_token = int(model.config.eos_token_id or 0)
    return Generator(model.eval(), tokenizer, end_token, int(model.config.max_position_embeddings))
