"""A program: the tokenizer of a model folder in an older form gets a `tokenizer.json` beside it.

    python -m jupiterd.workers.tokens.conversion FOLDER

Owns that conversion: vocab.json with merges.txt, and SentencePiece. transformers does it, as it
does whenever it loads such a folder; here it is done once, where the folder comes in. A
SentencePiece model is asked itself whether the result cuts text as it does: a folder that names the
wrong class of tokenizer would be cut wrongly, and nothing would be said. The last line that is
printed is JSON: `error` and `hint` where it failed.
"""

import json
import sys
from pathlib import Path
from typing import Any

from jupiterd.cycle.base.model_files import FAST_TOKENIZER, OLDER_TOKENIZERS
from jupiterd.errors import InvalidSettingError, JupiterError, MissingExtraError

HINT = "load it with transformers where that works, and save it: tokenizer.save_pretrained(FOLDER)"

PROBE = "Grüße, a naïve café!  Two  spaces\n\tdef f(x): return x**2  # 12345 и 日本\n\n\nThe end."
"""Words of several scripts, digits, code and white space."""


_PIECES = 200
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""SentencePiece's mark of a space."""


def convert(folder: Path) -> None:
    """Write `tokenizer.json` beside the files that it is made from.

    Raises:
        InvalidSettingError: transformers can't load the tokenizer, or loads another one.
        MissingExtraError: a library is missing.
    """
    tokenizer = _loaded(folder)
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InvalidSettingError(
            f"the tokenizer ({type(tokenizer).__name__}) isn't a fast one", HINT
        )
    _check_pieces(folder, backend)
    backend.save(str(folder / FAST_TOKENIZER))


def main() -> int:
    """Convert the tokenizer of the folder that is named; say what went wrong."""
    error_fields: dict[str, str] = {}
    try:
        convert(Path(sys.argv[1]))
    except JupiterError as error:
        error_fields = {"code": error.code, "error": error.message, "hint": error.hint}
    sys.stdout.write("\n" + json.dumps(error_fields) + "\n")
    return 1 if error_fields else 0


def _loaded(folder: Path) -> Any:  # noqa: ANN401 - transformers' tokenizer
    try:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"converting a tokenizer needs {error.name}") from error
    except Exception as error:  # whatever a library makes of a file that somebody sent
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InvalidSettingError(f"the tokenizer can't be loaded: {reason}", HINT) from error


def _check_pieces(folder: Path, backend: Any) -> None:  # noqa: ANN401 - the same
    """Raise InvalidSettingError where text is cut otherwise than by the folder's SentencePiece."""
    names = [name for names in OLDER_TOKENIZERS[1:] for name in names]
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        return
    try:
        from sentencepiece import SentencePieceProcessor
    except ModuleNotFoundError:
        return
    model: Any = SentencePieceProcessor(model_file=str(found))
    text = PROBE + _spelt(model)
    if backend.encode(text, add_special_tokens=False).tokens != model.encode(text, out_type=str):
        raise InvalidSettingError(
            "the tokenizer isn't of the class that its configuration names: "
            f"{found.name} cuts text in another way",
            HINT,
        )


def _spelt(model: Any) -> str:  # noqa: ANN401 - sentencepiece has no types
    """Return what some of a vocabulary's own pieces spell, which a probe may not have."""
    size = int(model.vocab_size())
    chosen = range(0, size, max(1, size // _PIECES))
    no_text = (model.is_control, model.is_unknown, model.is_byte, model.is_unused)
    spelling = (at for at in chosen if not any(is_so(at) for is_so in no_text))
    return "".join(model.id_to_piece(at) for at in spelling).replace(_SPACE, " ")


if __name__ == "__main__":
    sys.exit(main())
