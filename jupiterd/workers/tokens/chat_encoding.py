"""Conversations as tokens, by the tokenizer's own chat template, and which of them are answers.

Owns where an answer begins and ends among the tokens. The template is rendered by transformers, in
its sandbox. Doesn't know files or shards.

An answer begins where the template would let the model write, and ends before the next message: so
its end mark is learned too, as mlx-lm and TRL have it. A template may leave out of earlier turns
what it has in the last one (thoughts, for instance); the answers that it changes don't count.
"""

from pathlib import Path
from typing import Any

from jupiterd.cycle.data.instruction_rows import ChatMessage, Conversation
from jupiterd.errors import BrokenModelError, InvalidSettingError
from jupiterd.workers.tokens.marks import document_marks
from jupiterd.workers.tokens.tokenizer import load_tokenizer

NEEDS_TEMPLATE = (
    "give it the tokenizer of a chat model: jupiterctl data prepare --tokenizer FOLDER, "
    "or rows of prompt and completion"
)


class ChatEncoder:
    """A tokenizer and its template."""

    def __init__(self, folder: Path, *, answers_alone: bool) -> None:
        """Load what a folder holds.

        Raises:
            BrokenModelError: transformers can't load it.
        """
        from transformers import AutoTokenizer

        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
        except (OSError, ValueError, KeyError) as error:
            raise BrokenModelError(
                f"no tokenizer can be loaded from {folder.name}: {error}"
            ) from error
        self._answers_alone = answers_alone
        self._end = document_marks(folder, load_tokenizer(folder)).end

    @property
    def has_template(self) -> bool:
        """Say whether it knows how a conversation is written."""
        return bool(self._tokenizer.chat_template)

    def encode(self, said: Conversation) -> tuple[list[int], list[bool]]:
        """Return the tokens, and which of them the loss counts.

        The first never does: nothing foretells it.

        Raises:
            InvalidSettingError: there is no template, and it is more than a question and an answer;
                or the template refuses it.
        """
        ids, counted = self._templated(said) if self.has_template else self._plain(said)
        if not self._answers_alone:
            counted = [True] * len(ids)
        return ids, [False, *counted[1:]]

    def _plain(self, said: Conversation) -> tuple[list[int], list[bool]]:
        """Return question, answer and end mark, one behind the other."""
        if len(said.messages) != 2 or said.first_answer != 1:
            raise InvalidSettingError("the tokenizer has no chat template", NEEDS_TEMPLATE)
        question, answer = (self._ids(message.content) for message in said.messages)
        answer = [*answer, self._end]
        return [*question, *answer], [False] * len(question) + [True] * len(answer)

    def _templated(self, said: Conversation) -> tuple[list[int], list[bool]]:
        ids = self._rendered(said.messages)
        counted = [False] * len(ids)
        for number in said.answers:
            before = self._rendered(said.messages[:number], may_answer=True)
            through = ids
            if number + 1 < len(said.messages):
                through = self._rendered(said.messages[: number + 1])
            if through[: len(before)] == before and ids[: len(through)] == through:
                counted[len(before) : len(through)] = [True] * (len(through) - len(before))
        return ids, counted

    def _rendered(
        self, messages: tuple[ChatMessage, ...], *, may_answer: bool = False
    ) -> list[int]:
        if not messages:
            return []
        from jinja2.exceptions import TemplateError

        given = [{"role": each.role, "content": each.content} for each in messages]
        try:
            text: str = self._tokenizer.apply_chat_template(
                given, tokenize=False, add_generation_prompt=may_answer
            )
        except TemplateError as error:
            raise InvalidSettingError(f"the chat template refuses a row: {error}") from error
        return self._ids(text)

    def _ids(self, text: str) -> list[int]:
        found: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return found
