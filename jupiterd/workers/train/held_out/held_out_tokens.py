"""The tokens of held-out text that a loss is measured on, as training has them.

Owns how many of each document are taken, and which of them count: all of a text, with its end mark;
of a conversation, by the chat template, what the loss counts in training. Doesn't know ranks or
engines.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from jupiterd.cycle.data.instruction_rows import conversation_in
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.split import DEV, GATE, held_out_part
from jupiterd.workers.samples.sample_file import read_all
from jupiterd.workers.tokens.chat_encoding import ChatEncoder
from jupiterd.workers.tokens.document_masks import own_documents
from jupiterd.workers.tokens.marks import DocumentMarks, document_marks
from jupiterd.workers.tokens.tokenizer import encode_batch, load_tokenizer

DOCUMENTS_PER_SEQUENCE = 4
"""No more documents are read than that: some are shorter than a sequence."""

CHARACTERS_PER_TOKEN = 16
"""Hardly any text has more: longer ones are cut before they are encoded."""


@dataclass(frozen=True)
class HeldOutTokens:
    """Sequences; shorter than in training where the text is short."""

    tokens: NDArray[np.int64]
    """[sequences, tokens + 1]"""
    documents: NDArray[np.int64]
    """Of each token that is read, [sequences, tokens]."""
    counted: NDArray[np.bool_] | None
    """Which of those that are foretold count, [sequences, tokens]; None: all."""
    may_decide: bool
    """It is development text."""
    bytes_per_token: float
    """Bytes of text that a token that counts stands for; marks stand for none."""

    def targets(self, first: int, last: int) -> int:
        """Return how many tokens of these sequences count."""
        if self.counted is not None:
            return int(self.counted[first:last].sum())
        return int(self.tokens[first:last, 1:].size)


class _Document(NamedTuple):
    ids: Sequence[int]
    counted: Sequence[bool]

    def cut(self, most: int) -> "_Document":
        return _Document(self.ids[:most], self.counted[:most])


_Encode = Callable[[int], Sequence[_Document]]
"""Returns all documents, of each at least so many tokens, where it has them."""


def held_out_tokens(
    folders: Sequence[Path], tokenizer: Path, seq_len: int, most: int, loss_on: str
) -> HeldOutTokens:
    """Read as much as so many sequences take: about as many tokens of each document as can be.

    A long document alone would tell little of the others.

    Args:
        folders: what was held out.
        tokenizer: its folder.
        seq_len: tokens of a sequence.
        most: sequences.
        loss_on: what counts of conversations, `answers` or `all`.

    Raises:
        CorruptArtifactError: a folder can't be read.
    """
    may_decide, shown = _shown(folders)
    samples = list(islice(shown, DOCUMENTS_PER_SEQUENCE * most))
    loaded = load_tokenizer(tokenizer)
    marks = document_marks(tokenizer, loaded)
    are_said = any(sample.messages for sample in samples)
    if are_said:
        encode = _said(samples, ChatEncoder(tokenizer, answers_alone=loss_on != "all"))
    else:
        encode = _written(samples, loaded, marks)
    documents = _shares(encode, len(samples), most * seq_len + 1, seq_len)
    tokens, numbers, counted = _sequences(documents, seq_len, most)
    inputs = tokens[:, :-1]
    return HeldOutTokens(
        tokens,
        # Text is read behind the mark of what came before; conversations begin by themselves.
        own_documents(numbers) if are_said else np.cumsum(inputs == marks.end, axis=1),
        counted[:, 1:] if are_said else None,
        may_decide,
        _bytes_per_token(loaded, documents),
    )


def _shown(held_out: Sequence[Path]) -> tuple[bool, Iterator[Sample]]:
    """Return whether there is text of `dev`, and that text; else the gate's."""
    has_dev = any(sample.split == DEV for sample in read_all(held_out))
    part = DEV if has_dev else GATE
    return has_dev, (s for s in read_all(held_out) if held_out_part(s.split) == part)


def _said(samples: Sequence[Sample], encoder: ChatEncoder) -> _Encode:
    found = [said for sample in samples if (said := conversation_in(sample)) is not None]
    documents = [_Document(*encoder.encode(said)) for said in found]
    return lambda _: documents


def _written(samples: Sequence[Sample], tokenizer: Tokenizer, marks: DocumentMarks) -> _Encode:
    def encode(share: int) -> Sequence[_Document]:
        cut = [sample.text[: share * CHARACTERS_PER_TOKEN] for sample in samples]
        whole = (marks.around(ids) for ids in encode_batch(tokenizer, cut))
        return [_Document(ids, [True] * len(ids)) for ids in whole]

    return encode


def _shares(encode: _Encode, count: int, enough: int, seq_len: int) -> Sequence[_Document]:
    """Return the documents, each cut to a share with which there are enough tokens."""
    if not count:
        return []
    share, before = max(seq_len, -(-enough // count)), -1
    while True:
        documents = encode(share)
        cut = [document.cut(share) for document in documents]
        tokens, whole = (sum(len(d.ids) for d in each) for each in (cut, documents))
        if tokens >= enough or (tokens == whole and whole == before):
            return cut
        share, before = share * 2, whole


def _sequences(
    documents: Sequence[_Document], seq_len: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return tokens, their documents, and which count, [sequences, tokens + 1] each."""
    lengths = [len(document.ids) for document in documents]
    of_all = (
        np.array([id_ for each in documents for id_ in each.ids], dtype=np.int64),
        np.repeat(np.arange(len(documents)), lengths),
        np.array([each for document in documents for each in document.counted], dtype=np.bool_),
    )
    there = min(len(of_all[0]), most * seq_len + 1)
    length = min(seq_len, there - 1)
    count = (there - 1) // length if length > 0 else 0
    places = np.arange(count)[:, None] * length + np.arange(max(0, length) + 1)
    tokens, numbers, counted = of_all
    return tokens[places], numbers[places], counted[places]


def _bytes_per_token(tokenizer: Tokenizer, documents: Sequence[_Document]) -> float:
    counted = [[id_ for id_, is_in in zip(*each, strict=True) if is_in] for each in documents]
    texts = tokenizer.decode_batch(counted, skip_special_tokens=True)
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return size / max(1, sum(map(len, counted)))
