"""Tokenizers as others made them: older forms are converted, marks and templates stay."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import ByteLevelBPETokenizer
from transformers import AutoTokenizer

from jupiterd.errors import InvalidSettingError
from jupiterd.workers.generate.model_text import ModelText
from jupiterd.workers.tokens.conversion import PROBE
from jupiterd.workers.tokens.marks import DocumentMarks, document_marks
from jupiterd.workers.tokens.tokenizer import copy_tokenizer, encode_batch, load_tokenizer
from jupiterd.workers.train.checkpoints.checkpoint import write_model
from jupiterd.workers.train.model_config import model_config
from tests.support.workers.tiny_run import tiny_shape

TEXT = "The river walks to the sea; the sea sees the river. 1, 22, 333.\n" * 20
TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}</s>{% endfor %}"


def write_json(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(fields))


def like_gpt2(folder: Path) -> Path:
    """A tokenizer of vocab.json and merges.txt, as GPT-2's first folders have it."""
    folder.mkdir()
    made = ByteLevelBPETokenizer()
    made.train_from_iterator(
        [TEXT], vocab_size=300, special_tokens=["<|endoftext|>", "<stop>"], show_progress=False
    )
    made.save_model(str(folder))
    write_json(folder / "config.json", model_type="gpt2", eos_token_id=1)
    write_json(folder / "tokenizer_config.json", tokenizer_class="GPT2Tokenizer")
    return folder


def like_llama(folder: Path, kind: str = "bpe") -> Path:
    """A tokenizer of SentencePiece, as Llama 2's folder has it; with a chat template beside it."""
    trainer = pytest.importorskip("sentencepiece").SentencePieceTrainer
    folder.mkdir()
    (folder.parent / "text.txt").write_text(TEXT)
    trainer.train(
        input=str(folder.parent / "text.txt"), model_prefix=str(folder / "tokenizer"),
        vocab_size=310, model_type=kind, byte_fallback=True, unk_id=0, bos_id=1, eos_id=2,
        pad_id=-1, normalization_rule_name="identity", remove_extra_whitespaces=False,
        num_threads=1, minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    (folder / "tokenizer.vocab").unlink()
    write_json(folder / "config.json", model_type="llama", eos_token_id=2)
    write_json(
        folder / "tokenizer_config.json", tokenizer_class="LlamaTokenizer", bos_token="<s>",
        eos_token="</s>", unk_token="<unk>", add_bos_token=True, legacy=False,
    )  # fmt: skip
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    write_json(folder / "generation_config.json", eos_token_id=[2, 5], temperature=0.7)
    return folder


def test_vocab_and_merges_become_a_tokenizer_that_cuts_as_before(tmp_path: Path):
    given = like_gpt2(tmp_path / "given")
    copy_tokenizer(given, tmp_path / "taken")
    names = {path.name for path in (tmp_path / "taken").iterdir()}
    assert names >= {"vocab.json", "merges.txt", "tokenizer.json"}, "the originals stay"
    assert not (given / "tokenizer.json").exists(), "nothing is written where it came from"
    before = ByteLevelBPETokenizer(str(given / "vocab.json"), str(given / "merges.txt"))
    tokenizer = load_tokenizer(tmp_path / "taken")
    assert encode_batch(tokenizer, [PROBE, TEXT]) == [
        before.encode(each).ids for each in (PROBE, TEXT)
    ]
    marks = document_marks(tmp_path / "taken", tokenizer)
    assert marks == DocumentMarks((), 1), "config.json names <stop>, though there is an endoftext"
    assert (marks.first, marks.around([7])) == (1, [7, 1])


def test_sentencepiece_becomes_a_tokenizer_that_cuts_as_before(tmp_path: Path):
    from sentencepiece import SentencePieceProcessor

    given = like_llama(tmp_path / "given")
    copy_tokenizer(given, tmp_path / "taken")
    pieces = SentencePieceProcessor(model_file=str(given / "tokenizer.model"))
    tokenizer = load_tokenizer(tmp_path / "taken")
    assert encode_batch(tokenizer, [PROBE, TEXT]) == [pieces.encode(PROBE), pieces.encode(TEXT)]
    marks = document_marks(tmp_path / "taken", tokenizer)
    assert marks == DocumentMarks((1,), 2), "Llama was taught that a text begins with <s>"
    assert (marks.first, marks.around([7])) == (1, [1, 7, 2])


def test_a_tokenizer_of_another_class_than_it_says_is_refused(tmp_path: Path):
    given = like_llama(tmp_path / "given", kind="unigram")
    with pytest.raises(InvalidSettingError, match=r"tokenizer\.model cuts text in another way"):
        copy_tokenizer(given, tmp_path / "taken")


@pytest.mark.full
def test_the_program_says_in_a_line_what_it_cannot_load(tmp_path: Path):
    (tmp_path / "tokenizer.model").write_bytes(b"no protobuf")
    write_json(tmp_path / "tokenizer_config.json", tokenizer_class="LlamaTokenizer")
    program = [sys.executable, "-m", "jupiterd.workers.tokens.conversion", str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout.strip().rpartition("\n")[2])
    assert done.returncode == 1
    assert said["code"] == "invalid-setting"
    assert said["error"].startswith("the tokenizer can't be loaded: ")


def test_a_student_of_a_chat_model_is_talked_to_and_generates_as_its_base(tmp_path: Path):
    given = like_llama(tmp_path / "given")
    copy_tokenizer(given, tmp_path / "taken")
    config = {"model_type": "llama", "eos_token_id": [2, 5], "bos_token_id": 1, "vocab_size": 310}
    shape = tiny_shape(vocab_size=310).model_copy(
        update={"architecture": "llama", "config": config | {"hidden_size": 32}}
    )
    write_model(tmp_path / "student", model_config(shape, 2), {}, tmp_path / "taken")
    for name in ("generation_config.json", "chat_template.jinja", "tokenizer.model"):
        assert (tmp_path / "student" / name).read_bytes() == (given / name).read_bytes(), name
    said = json.loads((tmp_path / "student" / "config.json").read_text())
    assert (said["eos_token_id"], said["bos_token_id"], said["pad_token_id"]) == ([2, 5], 1, None)
    text = ModelText(tmp_path / "student")
    assert text.is_chat
    assert text.ends == {2, 5}
    library = AutoTokenizer.from_pretrained(str(tmp_path / "student"), local_files_only=True)
    assert library.chat_template == TEMPLATE
    assert (library.bos_token, library.eos_token) == ("<s>", "</s>")
