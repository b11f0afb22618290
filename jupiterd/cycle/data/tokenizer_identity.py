"""Whether two tokenizers are the same one: how they cut text, what ends it, how one is talked to.

Owns what counts. Pure: it is given the files' text. How a file was written down doesn't count, for
libraries write merges and empty fields in several ways; ids and their order do.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from blake3 import blake3

from jupiterd.cycle.base.model_files import FAST_TOKENIZER
from jupiterd.cycle.data.special_tokens import END_OF_TEXT, SAYING_FILES, end_token, token_text

TEMPLATE_FILE: Final = "chat_template.jinja"
OLD_TEMPLATE_FILE: Final = "chat_template.json"
TEMPLATE: Final = "chat_template"
CONFIG_FILE: Final = "tokenizer_config.json"

IDENTITY_FILES: Final = (FAST_TOKENIZER, TEMPLATE_FILE, OLD_TEMPLATE_FILE, *SAYING_FILES)
"""What is read of a folder to tell whose tokenizer it is."""

_HOW_TEXT_IS_CUT: Final = ("normalizer", "pre_tokenizer", "added_tokens")


@dataclass(frozen=True)
class TokenizerIdentity:
    """What makes one tokenizer another."""

    cut: str
    """A hash of how text becomes ids."""
    end: str
    """The text of the token that ends a document."""
    template: str
    """A hash of the chat template; empty: there is none."""
    begin: str | None = None
    """What stands before a document; empty: nothing. None: who sent this doesn't say."""
    entries: int = 0
    """One more than the largest id; 0: nobody knows."""

    def to_plain(self) -> dict[str, str | int]:
        """Return it as it is sent."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Self:
        """Return what was sent."""
        begin = said.get("begin")
        return cls(
            str(said.get("cut", "")),
            str(said.get("end", "")),
            str(said.get("template", "")),
            None if begin is None else str(begin),
            int(said.get("entries", 0)),
        )


def identity_of(files: Mapping[str, str]) -> TokenizerIdentity:
    """Return whose tokenizer a folder holds.

    Args:
        files: name -> text, for each of IDENTITY_FILES that is there.

    Raises:
        ValueError: a file isn't what it should be.
    """
    said = {name: _object(text) for name, text in files.items() if name != TEMPLATE_FILE}
    tokenizer = said.get(FAST_TOKENIZER, {})
    end = end_token(said)
    template = files.get(TEMPLATE_FILE) or _template_in(said)
    ending = _text_of(tokenizer, end) if isinstance(end, int) else end or END_OF_TEXT
    return TokenizerIdentity(
        _hash(_cutting(tokenizer)),
        ending,
        _hash(template) if template else "",
        _begin(tokenizer, said.get(CONFIG_FILE, {}), ending),
        max(token_ids_of(tokenizer).values(), default=-1) + 1,
    )


def token_ids_of(tokenizer: Mapping[str, Any]) -> dict[str, int]:
    """Return text -> id of all tokens, as a `tokenizer.json` says them."""
    vocabulary = (tokenizer.get("model") or {}).get("vocab") or {}
    if isinstance(vocabulary, list):  # of Unigram: text and score, in the order of ids
        found = {str(piece[0]): number for number, piece in enumerate(vocabulary)}
    else:
        found = {str(text): int(number) for text, number in vocabulary.items()}
    added = tokenizer.get("added_tokens") or ()
    return found | {str(token["content"]): int(token["id"]) for token in added}


def difference(one: TokenizerIdentity, other: TokenizerIdentity) -> str:
    """Return in what two tokenizers differ, as words; empty: they are one."""
    if one.cut != other.cut:
        return "they cut text in different ways"
    if one.end != other.end:
        return f"documents end with {one.end} there, with {other.end} here"
    if None not in (one.begin, other.begin) and one.begin != other.begin:
        return (
            f"documents begin with {one.begin or 'no mark'} there, "
            f"with {other.begin or 'no mark'} here"
        )
    if one.template != other.template:
        return "they have different chat templates"
    return ""


def _cutting(tokenizer: Mapping[str, Any]) -> dict[str, Any]:
    model = dict(tokenizer.get("model") or {})
    merges = [each if isinstance(each, str) else " ".join(each) for each in model.pop("merges", ())]
    return {
        **{name: tokenizer.get(name) for name in _HOW_TEXT_IS_CUT},
        "model": {name: value for name, value in model.items() if value},
        "merges": merges,
    }


def _begin(tokenizer: Mapping[str, Any], config: Mapping[str, Any], end: str) -> str:
    """Return what is put before a text, as the worker finds that packs it (`tokens.marks`)."""
    wanted = config.get("add_bos_token")
    if wanted is False:
        return ""
    added = [each for each in _added(tokenizer.get("post_processor") or {}) if each != end]
    return " ".join(added) or (token_text(config.get("bos_token")) if wanted else "")


def _added(processor: Mapping[str, Any]) -> list[str]:
    """Return the marks that a tokenizer puts around a text by itself."""
    match processor.get("type"):
        case "Sequence":
            return [mark for each in processor["processors"] for mark in _added(each)]
        case "TemplateProcessing":
            marks = (part.get("SpecialToken") for part in processor["single"])
            return [str(mark["id"]) for mark in marks if mark]
        case "BertProcessing" | "RobertaProcessing":
            return [str(processor[name][0]) for name in ("cls", "sep")]
        case _:
            return []


def _template_in(said: Mapping[str, Mapping[str, Any]]) -> Any:  # noqa: ANN401 - a text, or several
    named = (said.get(name, {}).get(TEMPLATE) for name in (CONFIG_FILE, OLD_TEMPLATE_FILE))
    return next(filter(None, named), None)


def _text_of(tokenizer: Mapping[str, Any], wanted: int) -> str:
    for token in tokenizer.get("added_tokens") or ():
        if token.get("id") == wanted:
            return str(token.get("content"))
    return f"token {wanted}"


def _object(text: str) -> dict[str, Any]:
    said: object = json.loads(text)
    if not isinstance(said, dict):
        raise ValueError("a file of the tokenizer isn't one JSON object")  # noqa: TRY004 - of values
    return said


def _hash(value: object) -> str:
    return blake3(
        json.dumps(value, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    ).hexdigest()
