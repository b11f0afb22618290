"""How text becomes a data set."""

import json
import random
import shutil

import numpy as np
import pytest

from jupiterd.cycle.runs.run_settings import DataSettings
from jupiterd.cycle.text_rules.secrets import EMAIL, REMOVED
from jupiterd.errors import (
    CorruptArtifactError,
    EmptySourceError,
    InvalidSettingError,
    SourceUnreachableError,
)
from jupiterd.protocol.frames import TaskFailed, TaskFinished
from jupiterd.workers.data.pack.prepare_dataset import prepare
from jupiterd.workers.data.pack.prepared_split import HELD_OUT_BYTES
from jupiterd.workers.data.skips import SkipCounts, SkipReason
from jupiterd.workers.data.tables import streamed_text
from jupiterd.workers.data.tables.isolated_tables import TableLimits
from jupiterd.workers.samples.sample_file import read_samples
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.tokens.tokenizer import END_OF_TEXT, TOKENIZER_FILE, load_tokenizer
from tests.support.workers.data_material import files_of, run_worker

WORDS = ("the", "queen", "walks", "over", "green", "hills", "and", "sees", "a", "wide", "river")


def letters(folder, count=60, lines=10, seed=3):
    chance = random.Random(seed)
    folder.mkdir()
    for number in range(count):
        body = "\n\n".join(" ".join(chance.choices(WORDS, k=9)) for _ in range(lines))
        (folder / f"{number:03}.txt").write_text(f"letter {number}\n\n{body}\n")
    return folder


def settings(path, **more):
    return DataSettings(kind="folder", path=str(path), **{"vocab_size": 300, **more})


def text_of(folder):
    """Everything in the shards, as text again."""
    tokens = [
        token
        for file in ShardSet(folder / "shards").index.files
        for token in memoryview((folder / "shards" / file["name"]).read_bytes()).cast("H")
    ]
    return load_tokenizer(folder / "tokenizer").decode(tokens, skip_special_tokens=False)


def held_out(folder):
    return {sample.text for sample in read_samples(folder / "holdout")}


def test_every_document_is_either_trained_on_or_held_out(tmp_path):
    source = letters(tmp_path / "letters")
    counts = prepare(settings(source), None, tmp_path / "out")
    given = {path.read_text() for path in source.iterdir()}
    trained = set(text_of(tmp_path / "out").split(END_OF_TEXT)) - {""}
    assert trained | held_out(tmp_path / "out") == given
    assert not trained & held_out(tmp_path / "out")
    assert (counts["documents"], counts["holdout_documents"]) == (
        len(trained), len(given) - len(trained),
    )  # fmt: skip
    assert counts["bytes"] == sum(len(text) for text in trained)


def test_no_document_keeps_its_secrets_on_either_side(tmp_path):
    source = letters(tmp_path / "letters")
    for number, path in enumerate(sorted(source.iterdir())):
        path.write_text(f"{path.read_text()}queen.{number}@hills.org\npassword = 'tr0ub4dor&3x9'\n")
    counts = prepare(settings(source, holdout=0.2), None, tmp_path / "out")
    texts = [*text_of(tmp_path / "out").split(END_OF_TEXT)[:-1], *held_out(tmp_path / "out")]
    assert len(texts) == counts["documents"] + counts["holdout_documents"]
    assert all(EMAIL in text and REMOVED in text for text in texts)
    assert not any("hills.org" in text or "tr0ub4dor" in text for text in texts)
    assert (counts["removed.email"], counts["removed.password"]) == (60, 60)


def test_the_same_text_gives_the_same_bytes(tmp_path):
    source = letters(tmp_path / "letters")
    for name in ("one", "two"):
        prepare(settings(source), None, tmp_path / name)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_what_is_held_out_doesn_t_hang_on_how_much_is_looked_at_first(tmp_path):
    source = letters(tmp_path / "letters", count=100)
    for name, size in (("all", 1 << 20), ("little", 20_000)):
        prepare(settings(source, holdout=0.2), None, tmp_path / name, sample_bytes=size)
    assert held_out(tmp_path / "all") == held_out(tmp_path / "little")


def test_the_stream_is_cut_at_whatever_length_training_wants(tmp_path):
    counts = prepare(settings(letters(tmp_path / "letters")), None, tmp_path / "out")
    for seq_len in (16, 100):
        shards = ShardSet(tmp_path / "out" / "shards", seq_len)
        assert shards.sequences == (counts["tokens"] - 1) // seq_len
        last = shards.sequences_at(np.array([shards.sequences - 1]))
        assert last.shape == (1, seq_len + 1)


def test_a_data_set_ends_after_so_many_tokens(tmp_path):
    source = letters(tmp_path / "letters")
    counts = prepare(settings(source, max_tokens=1000), None, tmp_path / "out")
    assert counts["tokens"] == ShardSet(tmp_path / "out" / "shards").index.tokens == 1000


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("count", [2, 3])
def test_of_a_few_documents_never_all_are_held_out(tmp_path, count, seed):
    source = letters(tmp_path / "letters", count, seed=seed)
    counts = prepare(settings(source, holdout=0.5), None, tmp_path / "out")
    assert min(counts["documents"], counts["holdout_documents"]) >= 1


@pytest.mark.parametrize("count", [2, 3, 10])
def test_of_a_few_documents_one_is_held_out_all_the_same(tmp_path, count):
    source = letters(tmp_path / "letters", count)
    counts = prepare(settings(source, holdout=0.001), None, tmp_path / "out")
    assert counts["holdout_documents"] == 1
    assert counts["documents"] == count - 1


def test_of_a_lone_document_the_end_is_held_out(tmp_path):
    source = letters(tmp_path / "letters", 1, lines=99)
    counts = prepare(settings(source), None, tmp_path / "out")
    assert (counts["documents"], counts["holdout_documents"]) == (1, 1)
    (text,) = [path.read_text() for path in source.iterdir()]
    (end,) = held_out(tmp_path / "out")
    assert text.endswith(end)
    assert text == text_of(tmp_path / "out").removesuffix(END_OF_TEXT) + end


def test_a_lone_line_is_trained_on(tmp_path):
    (tmp_path / "lone.txt").write_text("one line of text and no more " * 9)
    counts = prepare(settings(tmp_path / "lone.txt"), None, tmp_path / "out")
    assert (counts["documents"], counts["holdout_documents"]) == (1, 0)


def test_a_text_that_is_there_twice_is_on_one_side(tmp_path):
    source = letters(tmp_path / "letters", 40)
    for path in list(source.iterdir()):
        (source / f"again-{path.name}").write_text(path.read_text())
    prepare(settings(source, holdout=0.3), None, tmp_path / "out")
    trained = set(text_of(tmp_path / "out").split(END_OF_TEXT))
    assert held_out(tmp_path / "out")
    assert not trained & held_out(tmp_path / "out")


def test_a_copy_of_what_is_trained_on_is_not_held_out(tmp_path):
    source = letters(tmp_path / "letters", 60)
    for number, path in enumerate(sorted(source.iterdir())):
        (source / f"again-{path.name}").write_text(f"{path.read_text()}sent again, {number}\n")
    prepare(settings(source, holdout=0.3), None, tmp_path / "out")
    begun = {text.partition("sent again")[0] for text in held_out(tmp_path / "out")}
    trained = text_of(tmp_path / "out").split(END_OF_TEXT)
    assert begun
    assert not begun & {text.partition("sent again")[0] for text in trained}


def test_of_a_small_set_enough_is_held_out_to_tell_its_loss(tmp_path):
    counts = prepare(settings(letters(tmp_path / "letters", 40)), None, tmp_path / "out")
    assert counts["holdout_documents"] >= 5


def test_no_more_is_held_out_than_can_be_scored(tmp_path):
    source = letters(tmp_path / "letters", 60, lines=400)
    counts = prepare(settings(source, holdout=0.5), None, tmp_path / "out")
    assert HELD_OUT_BYTES <= counts["holdout_bytes"] < HELD_OUT_BYTES + 40_000


def test_nothing_is_held_out_where_nobody_wants_it(tmp_path):
    counts = prepare(settings(letters(tmp_path / "letters"), holdout=0.0), None, tmp_path / "out")
    assert counts["holdout_documents"] == 0
    assert not (tmp_path / "out" / "holdout").exists()


def test_a_tokenizer_that_is_given_is_used_and_kept(tmp_path):
    source = letters(tmp_path / "letters")
    prepare(settings(source), None, tmp_path / "first")
    given = tmp_path / "first" / "tokenizer"
    other = letters(tmp_path / "others", seed=9)
    prepare(settings(other), given, tmp_path / "second")
    prepare(settings(other, tokenizer_path=str(given)), None, tmp_path / "third")
    for name in ("second", "third"):
        assert files_of(tmp_path / name / "tokenizer") == files_of(given)


def test_a_tokenizer_that_can_t_be_used_is_told(tmp_path):
    source = letters(tmp_path / "letters")
    prepare(settings(source), None, tmp_path / "first")
    with pytest.raises(InvalidSettingError, match=r"no tokenizer\.json"):
        prepare(settings(source, tokenizer_path=str(source)), None, tmp_path / "a")
    folder = tmp_path / "first" / "tokenizer"
    plain = (folder / TOKENIZER_FILE).read_text()
    (folder / TOKENIZER_FILE).write_text(plain.replace(END_OF_TEXT, "<stop>"))
    with pytest.raises(InvalidSettingError, match="has no <"):
        prepare(settings(source), folder, tmp_path / "b")
    (folder / TOKENIZER_FILE).write_text("{}")
    with pytest.raises(CorruptArtifactError):
        prepare(settings(source), folder, tmp_path / "c")


def test_a_folder_without_text_is_told(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmptySourceError, match="is empty"):
        prepare(settings(tmp_path / "empty"), None, tmp_path / "out")


def test_a_worker_does_it_as_a_daemon_asks(tmp_path):
    source = letters(tmp_path / "letters")
    params = {**settings(source).to_scalars(), "threads": 1}
    last = run_worker("prepare", params, {}, tmp_path / "out")
    assert isinstance(last, TaskFinished), last
    assert set(last.outputs) == {"tokenizer", "shards", "skipped", "holdout"}
    assert last.counts["vocab_size"] == 300


@pytest.mark.full
def test_a_hugging_face_data_set_is_streamed(tmp_path):
    pytest.importorskip("datasets", reason="the package datasets isn't installed")
    folder = tmp_path / "set"
    folder.mkdir()
    lines = [json.dumps({"text": f"row {number} has text", "id": number}) for number in range(50)]
    (folder / "train.jsonl").write_text("\n".join(lines))
    hub = DataSettings(kind="hugging_face", path=str(folder), vocab_size=300)
    counts = prepare(hub, None, tmp_path / "out")
    assert counts["documents"] + counts["holdout_documents"] == 50
    odd = DataSettings(kind="hugging_face", path=str(folder), vocab_size=300, field="story")
    last = run_worker("prepare", odd.to_scalars(), {}, tmp_path / "odd")
    assert isinstance(last, TaskFailed)
    assert "has no field story" in last.message
    assert "--field takes one of: text, id" in last.hint


@pytest.mark.full
def test_a_data_set_that_fills_the_memory_costs_what_comes_behind_it_and_no_more(
    tmp_path, monkeypatch
):
    pytest.importorskip("datasets", reason="the package datasets isn't installed")
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "set"
    folder.mkdir()
    for name, texts in {
        "train-0": [f"row {number} has text" for number in range(50)],
        "train-1": pa.DictionaryArray.from_arrays([0] * 64, ["a" * (64 << 20)]),
    }.items():
        table = pa.table({"text": texts})
        parquet.write_table(table, folder / f"{name}.parquet", compression="zstd")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 100_000
    monkeypatch.setattr(streamed_text, "LIMITS", TableLimits(memory_bytes=1 << 30))
    hub = DataSettings(kind="hugging_face", path=str(folder), vocab_size=300)
    counts = prepare(hub, None, tmp_path / "out")
    assert counts["documents"] + counts["holdout_documents"] == 50
    assert (counts["skipped"], counts["skipped_rows"]) == (1, 1)


def test_a_text_that_is_too_long_is_left_out_and_counted(tmp_path, monkeypatch):
    rows = iter([{"text": "one"}, SkipReason.TOO_LARGE, {"text": " "}, {"text": "two"}])
    monkeypatch.setattr(streamed_text, "rows_apart", lambda *_arguments: rows)
    skips = SkipCounts()
    hub = DataSettings(kind="hugging_face", path="a/b", vocab_size=300)
    assert list(streamed_text.documents(hub, skips)) == ["one", "two"]
    assert skips.counts == {"too_large": 1, "empty": 1}
    assert skips.firsts["too_large"] == "a/b#2"


def test_a_hub_that_falls_silent_is_asked_again_later(monkeypatch):
    rows = iter([{"text": "one"}, SkipReason.TIMED_OUT])
    monkeypatch.setattr(streamed_text, "rows_apart", lambda *_arguments: rows)
    found = streamed_text.documents(DataSettings(kind="hugging_face", path="a/b"), SkipCounts())
    assert next(found) == "one"
    with pytest.raises(SourceUnreachableError, match="a/b sends nothing any more"):
        next(found)


def test_whole_folders_are_held_out_where_there_are_enough_of_them(tmp_path):
    source = tmp_path / "books"
    for number in range(60):
        book = letters(tmp_path / f"made{number}", count=4, seed=number)
        shutil.copytree(book, source / f"book{number:02}")
    counts = prepare(settings(source, holdout=0.2), None, tmp_path / "out")
    book_of = {path.read_text(): path.parent.name for path in source.rglob("*.txt")}
    trained = {book_of[text] for text in set(text_of(tmp_path / "out").split(END_OF_TEXT)) - {""}}
    held = {book_of[text] for text in held_out(tmp_path / "out")}
    assert held
    assert not trained & held
    assert counts["holdout_clusters"] == len(held)


@pytest.mark.full
def test_of_one_long_file_no_piece_is_held_out_beside_those_that_are_trained_on(tmp_path):
    source = letters(tmp_path / "letters", 150)
    lines = (f"Line {number} of a very long file says no more.\n" for number in range(60_000))
    (source / "long.txt").write_text("".join(lines))
    prepare(settings(source, holdout=0.5), None, tmp_path / "out")
    held = held_out(tmp_path / "out")
    assert held
    assert not any("very long file" in text for text in held)
