"""A model folder's tokenizer: prompts to tokens, tokens to text, and which tokens end one.

Owns where a prompt begins and ends for a model. A folder with a chat template is talked to; any
other writes on. Doesn't know what the model computes. Code that comes with a model is never run.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from jupiterd.cycle.data.special_tokens import END_OF_TEXT, token_ids
from jupiterd.cycle.generation.chat_models import CONFIG_FILE, is_talked_to
from jupiterd.cycle.templates.prompt import Prompt
from jupiterd.errors import BrokenModelError
from jupiterd.workers.tokens.marks import document_marks, read_object
from jupiterd.workers.tokens.tokenizer import load_tokenizer

PROMPT_SHARE = 0.5
"""A prompt takes at most this share of what the model can hold, so that there is room to write."""

_CONFIG = "config.json"
_WITH_END = (_CONFIG, "generation_config.json")


class ModelText:
    """How text goes into one model and comes out of it."""

    def __init__(self, folder: Path) -> None:
        """Read it from a Hugging Face model folder.

        Raises:
            BrokenModelError: tokenizer or configuration can't be read.
        """
        self._folder = folder
        self.tokenizer: Tokenizer = load_tokenizer(folder)
        self.config = read_object(folder / _CONFIG)
        marks = document_marks(folder, self.tokenizer)
        self._start: list[int] = list(marks.before) or [marks.end]
        usual = self.tokenizer.token_to_id(END_OF_TEXT)
        also = [] if usual is None else [usual]
        self.ends: frozenset[int] = frozenset([*_end_tokens(folder), marks.end, *also])
        """Tokens that end a text."""

    @cached_property
    def is_chat(self) -> bool:
        """It is talked to."""
        return bool(self._library.chat_template) if _has_template(self._folder) else False

    @cached_property
    def specials(self) -> tuple[str, ...]:
        """What it takes for its own marks."""
        added = self.tokenizer.get_added_tokens_decoder().values()
        return tuple(sorted({token.content for token in added if token.special}))

    @cached_property
    def max_tokens(self) -> int:
        """Prompt and text together."""
        return int(self.config.get("max_position_embeddings") or 2048)

    def is_opened(self, prompt: Prompt) -> bool:
        """Say whether the model writes on from the prompt, instead of answering it."""
        return prompt.goes_on or not self.is_chat

    def ids(self, prompt: Prompt) -> list[int]:
        """Return the tokens that the model is given."""
        if self.is_opened(prompt):
            return self.ids_of_text(prompt.opening)
        turns = [{"role": "user", "content": prompt.message}]
        said: str = self._library.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        return self._library(said, add_special_tokens=False)["input_ids"]

    def ids_of_text(self, text: str) -> list[int]:
        """Return the tokens of a text at whose end the model writes on."""
        return [*self._start, *self.tokenizer.encode(text, add_special_tokens=False).ids]

    def fits(self, size: int, max_tokens: int) -> bool:
        """Say whether a prompt of so many tokens leaves room for what is to be written."""
        return size < self.max_tokens * PROMPT_SHARE or size + max_tokens <= self.max_tokens

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""
        return self.tokenizer.decode(list(ids))

    @cached_property
    def _library(self) -> Any:  # noqa: ANN401 - transformers' tokenizer
        from transformers import AutoTokenizer

        try:
            return AutoTokenizer.from_pretrained(
                self._folder, local_files_only=True, trust_remote_code=False
            )
        except (OSError, ValueError, KeyError, ImportError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise BrokenModelError(
                f"the chat template of {self._folder.name} can't be used: {reason}"
            ) from error


def _end_tokens(folder: Path) -> Iterator[int]:
    for name in _WITH_END:
        if not (folder / name).is_file():
            continue
        yield from token_ids(read_object(folder / name).get("eos_token_id"))


def _has_template(folder: Path) -> bool:
    """Say whether there is a chat template, without loading a library for it."""
    config = folder / CONFIG_FILE
    said = config.read_text(encoding="utf-8", errors="replace") if config.is_file() else ""
    return is_talked_to([path.name for path in folder.iterdir()], said)
