"""The byte-level BPE tokenizer: trained on real text, loadable by transformers and mlx-lm.

Owns its form on disk and how text becomes ids. END_OF_TEXT, its id 0, stands after each document,
and before the first token of a text that is scored; what others made has marks of its own
(`tokens.marks`). Doesn't know what is packed or scored.
"""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from blake3 import blake3
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from jupiterd.cycle.base.model_files import FAST_TOKENIZER, WITH_TOKENIZER, is_older_tokenizer
from jupiterd.cycle.data.special_tokens import END_OF_TEXT
from jupiterd.errors import BrokenModelError
from jupiterd.model_folder import check_links

TOKENIZER_FILE = FAST_TOKENIZER
CONFIG_FILE = "tokenizer_config.json"


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Return a byte-level BPE of at most `vocab_size` entries; equal texts give an equal one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        # Every byte has a token, seen or not: no text is ever unknown.
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the two files that Hugging Face loaders look for."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / TOKENIZER_FILE))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "pad_token": END_OF_TEXT,
        "add_bos_token": False,
        "add_eos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1_000_000,
    }
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def copy_tokenizer(given: Path, folder: Path) -> None:
    """Copy the tokenizer of a folder that may hold a whole model, and all that belongs to it.

    One in an older form gets a `tokenizer.json` beside its own files.

    Raises:
        InvalidSettingError: it is in a form that can't be converted.
        UsageError: a link leads out of that folder.
        MissingExtraError: a library is missing.
    """
    check_links(given)
    folder.mkdir(parents=True, exist_ok=True)
    for name in WITH_TOKENIZER:
        if (given / name).is_file():
            shutil.copyfile(given / name, folder / name)
    if is_older_tokenizer({path.name for path in folder.iterdir()}):
        from jupiterd.workers.tokens.conversion import convert

        convert(folder)


def load_tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer of a folder, for which special tokens spelt out in a text are text.

    Raises:
        BrokenModelError: the folder holds none.
    """
    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    except Exception as error:  # the library raises bare Exception
        raise BrokenModelError(f"no tokenizer can be read from {folder.name}") from error
    tokenizer.encode_special_tokens = True
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def tokenizer_hash(folder: Path) -> str:
    """Return BLAKE3 of tokenizer.json, 64 hex digits."""
    return blake3((folder / TOKENIZER_FILE).read_bytes()).hexdigest()


def entries_of(tokenizer: Tokenizer) -> int:
    """Return one more than the highest id: tokens that were added may leave gaps before them."""
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values())


def encode_batch(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    """Return the ids of each text, with no special token added."""
    return [
        encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    ]
