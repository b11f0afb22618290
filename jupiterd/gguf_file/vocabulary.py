"""The GGUF fields of a tokenizer: tokens with kinds, merges or scores, special tokens, template.

Owns the list of known tokenizers: byte-level BPE whose split of text has a name in llama.cpp, and
SentencePiece BPE. Pure: takes the content of the files. llama.cpp's converter writes the others.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from jupiterd.cycle.data.special_tokens import end_token, token_ids, token_text
from jupiterd.errors import UsageError

Said = Mapping[str, Any]

GPT2_SPLIT: Final = "gpt-2"
is_of_a_byte = re.compile(r"<0x[0-9A-F]{2}>").fullmatch
"""Matches a SentencePiece token that stands for a byte."""

_SPACE: Final = "\N{LOWER ONE EIGHTH BLOCK}"
"""SentencePiece's character for a space."""

_LLAMA_3: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN_2: Final = _LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")


class TokenKind(IntEnum):
    """llama.cpp's kinds of tokens."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class Vocabulary:
    """The fields of a tokenizer in a GGUF file."""

    model: str
    """`gpt2`: byte-level BPE; `llama`: SentencePiece."""
    split: str
    """llama.cpp's name of how text is split before merges."""
    tokens: Sequence[str]
    kinds: Sequence[TokenKind]
    merges: Sequence[str]
    """Only for byte-level BPE."""
    scores: Sequence[float]
    """Only for SentencePiece, one for each token: higher scores are merged first."""
    ids: Mapping[str, int]
    """Role, such as bos, eos or eot -> token id."""
    adds_bos: bool
    begins_with_space: bool
    template: str | Sequence[Mapping[str, str]]
    """The chat template; empty: the model only continues text."""


def vocabulary_of(files: Mapping[str, Said], template: str, rows: int) -> Vocabulary:
    """Return the fields of a tokenizer.

    Args:
        files: file name -> content, for tokenizer.json and the files that name special tokens.
        template: the text of chat_template.jinja; empty: there is none.
        rows: the number of rows of the embedding; each gets a token.

    Raises:
        UsageError: the tokenizer isn't known here; the message says why.
    """
    tokenizer, config = files["tokenizer.json"], files.get("tokenizer_config.json", {})
    model: Said = tokenizer.get("model") or {}
    if model.get("type", "BPE") != "BPE" or not model.get("vocab"):
        raise UsageError(f"no tokenizer of the kind {model.get('type')} is written as GGUF here")
    unknown = str(model.get("unk_token") or token_text(config.get("unk_token")))
    tokens, kinds = _tokens(tokenizer, unknown, rows)
    merges = [each if isinstance(each, str) else " ".join(each) for each in model["merges"]]
    is_pieces = _is_of_pieces(tokenizer)
    ids = dict(_special_ids(files, {text: at for at, text in enumerate(tokens)}))
    return Vocabulary(
        model="llama" if is_pieces else "gpt2",
        split="default" if is_pieces else _split(tokenizer),
        tokens=tokens,
        kinds=kinds,
        merges=[] if is_pieces else merges,
        scores=_scores(tokens, merges) if is_pieces else [],
        ids=ids,
        adds_bos=adds_bos(tokenizer, config),
        begins_with_space=is_pieces and _begins_with_space(tokenizer),
        template=template or config.get("chat_template") or "",
    )


def _tokens(tokenizer: Said, unknown: str, rows: int) -> tuple[list[str], list[TokenKind]]:
    """Return the token and the kind for each row of the embedding."""
    tokens = [f"[PAD{at}]" for at in range(rows)]
    kinds = [TokenKind.UNUSED] * rows
    added = {int(each["id"]): each for each in tokenizer.get("added_tokens") or ()}
    known = {int(at): str(text) for text, at in tokenizer["model"]["vocab"].items()}
    known |= {at: str(each["content"]) for at, each in added.items()}
    if max(known) >= rows:
        raise UsageError(f"the tokenizer has {max(known) + 1:,} tokens, and the model {rows:,}")
    is_pieces = _is_of_pieces(tokenizer)
    for at, text in known.items():
        tokens[at] = text
        kinds[at] = _kind(added.get(at))
        if is_pieces and text == unknown:
            kinds[at] = TokenKind.UNKNOWN
        elif is_pieces and is_of_a_byte(text):
            kinds[at] = TokenKind.BYTE
    return tokens, kinds


def _kind(added: Said | None) -> TokenKind:
    if added is None:
        return TokenKind.NORMAL
    return TokenKind.CONTROL if added.get("special") else TokenKind.USER_DEFINED


def _is_of_pieces(tokenizer: Said) -> bool:
    return bool(tokenizer["model"].get("byte_fallback"))


def _scores(tokens: Sequence[str], merges: Sequence[str]) -> list[float]:
    """Return a score for each token: minus the rank of its merge; 0 for tokens without a merge."""
    ranks: dict[str, float] = {}
    for rank, merge in enumerate(merges):
        left, _, right = merge.partition(" ")
        ranks.setdefault(left + right, -float(rank))
    return [ranks.get(text, 0.0) for text in tokens]


def _split(tokenizer: Said) -> str:
    """Return llama.cpp's name for how text is split; raise UsageError if it has none."""
    steps = list(_steps(tokenizer.get("pre_tokenizer")))
    kinds = [step.get("type") for step in steps]
    regexes = [str(step["pattern"].get("Regex")) for step in steps if step.get("type") == "Split"]
    bytes_ = steps[-1] if steps and kinds[-1] == "ByteLevel" else {"add_prefix_space": True}
    if not bytes_.get("add_prefix_space", True):
        by_bytes = bool(bytes_.get("use_regex", True))
        if kinds == ["ByteLevel"] and by_bytes:
            return GPT2_SPLIT
        is_each = steps[0].get("individual_digits")
        if kinds == ["Digits", "ByteLevel"] and by_bytes and is_each:
            return "smollm"
        if kinds == ["Split", "ByteLevel"] and not by_bytes:
            if regexes == [_QWEN_2]:
                return "qwen2"
            if regexes == [_LLAMA_3]:
                return "llama-bpe" if tokenizer["model"].get("ignore_merges") else "smaug-bpe"
    raise UsageError("no tokenizer that splits text so is written as GGUF here")


def _steps(step: Said | None) -> Iterator[Said]:
    """Yield the steps of a tokenizer's component in order; none if the component is missing."""
    if not step:
        return
    parts = step.get("pretokenizers") or step.get("normalizers") or step.get("processors")
    yield from parts or [step]


def _begins_with_space(tokenizer: Said) -> bool:
    """Return whether the tokenizer puts a space before a text."""
    steps = [*_steps(tokenizer.get("normalizer")), *_steps(tokenizer.get("pre_tokenizer"))]
    return any(
        (step.get("type") == "Prepend" and step.get("prepend") == _SPACE)
        or (step.get("type") == "Metaspace" and step.get("prepend_scheme", "always") != "never")
        for step in steps
    )


def adds_bos(tokenizer: Said, config: Said) -> bool:
    """Return whether the tokenizer puts the bos token before a text."""
    if (said := config.get("add_bos_token")) is not None:
        return bool(said)
    begin = token_text(config.get("bos_token"))
    for step in _steps(tokenizer.get("post_processor")):
        first = next(iter(step.get("single") or ()), {})
        if (first.get("SpecialToken") or {}).get("id") == begin and begin:
            return True
    return False


def _special_ids(files: Mapping[str, Said], at: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    config, generating = files.get("tokenizer_config.json", {}), files.get("generation_config.json")
    model = files.get("config.json", {})
    for role, name in (("bos", "bos_token"), ("pad", "pad_token"), ("unk", "unk_token")):
        text, ids = token_text(config.get(name)), token_ids(model.get(f"{name}_id"))
        if text in at:
            yield role, at[text]
        elif ids and 0 <= ids[0] < len(at):
            yield role, ids[0]
    end = end_token(files)
    end_id = at.get(end) if isinstance(end, str) else end
    if end_id is None:
        return
    yield "eos", end_id
    others = [each for each in token_ids((generating or {}).get("eos_token_id")) if each != end_id]
    if others:
        yield "eot", others[0]
