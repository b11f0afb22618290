"""Text and conversations in one stream of tokens, of which the loss counts a part.

Owns how a document of text stands among conversations. Each sees nothing but itself there, so text
begins with the mark behind which it is scored, too: the mark itself doesn't count, all that follows
it does. Doesn't know which samples are chosen, or what an answer is (`chat_encoding`).
"""

from collections.abc import Sequence

from tokenizers import Tokenizer

from jupiterd.cycle.data.instruction_rows import conversation_in
from jupiterd.cycle.data.lineage import Sample
from jupiterd.errors import InvalidSettingError
from jupiterd.workers.progress import Progress
from jupiterd.workers.tokens.chat_encoding import ChatEncoder
from jupiterd.workers.tokens.marks import DocumentMarks
from jupiterd.workers.tokens.shards import ShardWriter
from jupiterd.workers.tokens.tokenizer import encode_batch

_BATCH_DOCUMENTS = 64
"""So many are encoded at once."""


class MixedStream:
    """Writes samples, as conversations where they are some and the template takes them."""

    def __init__(
        self, writer: ShardWriter, tokenizer: Tokenizer, marks: DocumentMarks, encoder: ChatEncoder
    ) -> None:
        """Take where to write, and the marks of a document of text."""
        self._writer = writer
        self._tokenizer = tokenizer
        self._marks = marks
        self._encoder = encoder
        self.conversations = 0
        """So many were written as such."""

    def append_all(self, samples: Sequence[Sample], progress: Progress) -> None:
        """Add samples in their order."""
        for start in range(0, len(samples), _BATCH_DOCUMENTS):
            self._append(samples[start : start + _BATCH_DOCUMENTS])
            progress(min(start + _BATCH_DOCUMENTS, len(samples)), len(samples), "documents")

    def _append(self, batch: Sequence[Sample]) -> None:
        said = [self._conversation(sample) for sample in batch]
        pairs = list(zip(batch, said, strict=True))
        texts = [sample.text for sample, conversation in pairs if conversation is None]
        encoded = iter(encode_batch(self._tokenizer, texts))
        for sample, conversation in pairs:
            ids, counted = conversation or self._text(next(encoded))
            self._writer.append_masked(ids, counted, sample.id)

    def _conversation(self, sample: Sample) -> tuple[list[int], list[bool]] | None:
        said = conversation_in(sample)
        if said is None:
            return None
        try:
            encoded = self._encoder.encode(said)
        except InvalidSettingError:  # a template for other conversations: the text says the same
            return None
        self.conversations += 1
        return encoded

    def _text(self, ids: Sequence[int]) -> tuple[list[int], list[bool]]:
        return [self._marks.first, *ids, self._marks.end], [False, *([True] * (len(ids) + 1))]
