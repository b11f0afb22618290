import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.data.lineage import text_hash
from jupiterd.errors import Bug, CorruptArtifactError, UsageError
from jupiterd.workers.tokens.shards import INDEX_FILE, ShardSet, ShardWriter

STREAM = list(range(100, 203))


def written(folder, pieces=((0, 3), (3, 60), (60, 103)), max_file_tokens=25):
    writer = ShardWriter(folder, 300, max_file_tokens)
    for start, stop in pieces:
        writer.append(STREAM[start:stop])
    writer.finish(seq_len=10, tokenizer_hash="ab", documents=3, size_bytes=400)
    return folder


def test_sequences_overlap_by_one_token_across_the_files(tmp_path):
    shards = ShardSet(written(tmp_path))
    assert len(shards.index.files) == 5
    assert (shards.sequences, shards.seq_len) == (10, 10)
    sequences = shards.sequences_at(np.arange(10))
    assert sequences.dtype == np.int64
    assert sequences.tolist() == [STREAM[n * 10 : n * 10 + 11] for n in range(10)]


def test_many_sequences_are_read_at_once_in_any_order(tmp_path):
    shards = ShardSet(written(tmp_path, max_file_tokens=4))
    found = shards.sequences_at(np.array([7, 2, 9, 2]))
    assert found.dtype == np.int64
    assert found.tolist() == [STREAM[n * 10 : n * 10 + 11] for n in (7, 2, 9, 2)]
    with pytest.raises(Bug, match="no sequence 10"):
        shards.sequences_at(np.array([1, 10]))


def test_how_the_tokens_came_plays_no_part(tmp_path):
    one = written(tmp_path / "a")
    other = written(tmp_path / "b", pieces=[(n, n + 1) for n in range(103)])
    for name in ("00000.bin", "00004.bin", INDEX_FILE):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_files_are_little_endian_16_bit_numbers(tmp_path):
    assert (written(tmp_path) / "00000.bin").read_bytes()[:4] == b"\x64\x00\x65\x00"


def test_files_of_a_large_vocabulary_are_little_endian_32_bit_numbers(tmp_path):
    writer = ShardWriter(tmp_path, 151_936)
    writer.append([151_935, 7])
    index = writer.finish(seq_len=1, tokenizer_hash="", documents=1, size_bytes=3)
    assert (tmp_path / "00000.bin").read_bytes() == b"\x7f\x51\x02\x00\x07\x00\x00\x00"
    assert (index.token_bytes, json.loads((tmp_path / INDEX_FILE).read_text())["token_bytes"]) == (
        4, 4,
    )  # fmt: skip


@st.composite
def streams(draw):
    """Return a vocabulary of either width, documents with ids of it, and tokens of a file."""
    vocab = draw(st.one_of(st.integers(257, 1 << 16), st.integers((1 << 16) + 1, 1 << 20)))
    tokens = st.one_of(st.integers(0, vocab - 1), st.sampled_from([0, vocab - 1]))
    documents = draw(st.lists(st.lists(tokens, min_size=1, max_size=9), min_size=1, max_size=9))
    return vocab, documents, draw(st.integers(1, 12)), draw(st.integers(1, 5))


@given(streams())
def test_any_stream_of_either_width_is_read_as_it_was_written(stream):
    vocab, documents, most, seq_len = stream
    tokens = [token for document in documents for token in document]
    with tempfile.TemporaryDirectory() as made:
        writer = ShardWriter(Path(made), vocab, max_file_tokens=most)
        for number, document in enumerate(documents):
            writer.append(document, [(text_hash(str(number)), len(document))])
        writer.finish(seq_len=seq_len, tokenizer_hash="", documents=1, size_bytes=1)
        shards = ShardSet(Path(made))
        assert shards.index.token_bytes == (2 if vocab <= 1 << 16 else 4)
        assert shards.sequences == (len(tokens) - 1) // seq_len
        every = np.arange(shards.sequences)
        wanted = [tokens[n * seq_len : (n + 1) * seq_len + 1] for n in every]
        assert shards.sequences_at(every).tolist() == wanted
        owners = [n for n, document in enumerate(documents) for _ in document]
        wanted = [owners[n * seq_len : (n + 1) * seq_len + 1] for n in every]
        assert shards.documents_at(every).tolist() == wanted


OLDER = """{
  "bytes": 9,
  "document_offsets": "documents.index",
  "documents": 2,
  "files": [
    {
      "hash": "cc0d63d7b65b3e38155a72d16b76769bac00a0f5dbf1ab84da90f79ba042c4cf",
      "name": "00000.bin",
      "tokens": 4
    },
    {
      "hash": "f273102d33b910ab8b1eda6e483bb587ec34372c3562cd9bfb68bcf8890ba9cd",
      "name": "00001.bin",
      "tokens": 2
    }
  ],
  "hash": "6d3a51e90620937c8567e18e9c54dd4cce6281da17776ca71c5bb70bc885f96b",
  "seq_len": 2,
  "sequences": 2,
  "tokenizer_hash": "ab",
  "tokens": 6,
  "vocab_size": 300
}
"""
"""Written by the build before ids could be wide, with its files."""
OLDER_FILES = {"00000.bin": "050006002b010000", "00001.bin": "07000000"}


def test_a_data_set_that_an_older_build_packed_opens_and_is_still_written_alike(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / INDEX_FILE).write_text(OLDER)
    for name, data in OLDER_FILES.items():
        (tmp_path / "old" / name).write_bytes(bytes.fromhex(data))
    shards = ShardSet(tmp_path / "old")
    assert shards.sequences_at(np.arange(2)).tolist() == [[5, 6, 299], [299, 0, 7]]
    writer = ShardWriter(tmp_path / "new", 300, max_file_tokens=4)
    writer.append([5, 6, 299, 0], [(text_hash("one"), 4)])
    writer.append([7, 0], [(text_hash("two"), 2)])
    writer.finish(seq_len=2, tokenizer_hash="ab", documents=2, size_bytes=9)
    assert (tmp_path / "new" / INDEX_FILE).read_text() == OLDER
    for name, data in OLDER_FILES.items():
        assert (tmp_path / "new" / name).read_bytes().hex() == data


@pytest.mark.parametrize("said", [{"token_bytes": 3}, {"compressed": True}])
def test_shards_of_a_newer_build_are_refused_and_not_taken_for_damaged(tmp_path, said):
    index = json.loads((written(tmp_path) / INDEX_FILE).read_text())
    (tmp_path / INDEX_FILE).write_text(json.dumps(index | said))
    with pytest.raises(UsageError, match="packed by a newer jupiterd: it says") as caught:
        ShardSet(tmp_path)
    assert "upgrade jupiterd" in caught.value.hint


@pytest.mark.parametrize("token", [-1, 300])
def test_an_id_beyond_the_vocabulary_is_never_written(tmp_path, token):
    with pytest.raises(Bug, match=f"no token {token}"):
        ShardWriter(tmp_path, 300).append([7, token, 8])


def test_the_largest_token_id_fits(tmp_path):
    writer = ShardWriter(tmp_path, 65_536)
    writer.append([65535, 0, 65535])
    writer.finish(seq_len=2, tokenizer_hash="", documents=1, size_bytes=3)
    assert ShardSet(tmp_path).sequences_at(np.array([0])).tolist() == [[65535, 0, 65535]]


@pytest.mark.parametrize("number", [-1, 10])
def test_a_sequence_that_is_not_there_is_a_bug(tmp_path, number):
    with pytest.raises(Bug):
        ShardSet(written(tmp_path)).sequences_at(np.array([number]))


def test_one_token_short_is_one_sequence_less(tmp_path):
    writer = ShardWriter(tmp_path, 30)
    writer.append(range(20))
    index = writer.finish(seq_len=10, tokenizer_hash="", documents=1, size_bytes=9)
    assert index.sequences == 1


@pytest.mark.parametrize("name", ["00001.bin", INDEX_FILE])
def test_a_missing_file_is_named_corrupt(tmp_path, name):
    (written(tmp_path) / name).unlink()
    with pytest.raises(CorruptArtifactError):
        ShardSet(tmp_path)


def test_a_short_file_is_named_corrupt(tmp_path):
    path = written(tmp_path) / "00001.bin"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(CorruptArtifactError, match="holds 24 tokens, not 25"):
        ShardSet(tmp_path)


def test_an_index_cannot_name_files_elsewhere(tmp_path):
    index = json.loads((written(tmp_path) / INDEX_FILE).read_text())
    index["files"][0]["name"] = "../secret.bin"
    (tmp_path / INDEX_FILE).write_text(json.dumps(index))
    with pytest.raises(CorruptArtifactError, match="outside its folder"):
        ShardSet(tmp_path)


def with_documents(folder, tokens=(7, 1, 22, 40, 33)):
    writer = ShardWriter(folder, 300, max_file_tokens=25)
    ids = [text_hash(str(number)) for number in range(len(tokens))]
    writer.append(STREAM[:30], list(zip(ids, tokens, strict=True))[:3])
    writer.append(STREAM[30:], list(zip(ids, tokens, strict=True))[3:])
    writer.finish(seq_len=10, tokenizer_hash="ab", documents=5, size_bytes=400)
    return folder


def test_each_token_of_a_sequence_is_of_a_document(tmp_path):
    shards = ShardSet(with_documents(tmp_path))
    numbers = np.repeat(np.arange(5), [7, 1, 22, 40, 33])
    rows = [numbers[n * 10 : n * 10 + 11].tolist() for n in range(shards.sequences)]
    assert shards.documents_at(np.arange(shards.sequences)).tolist() == rows
    some = np.array([4, 0, 9])
    assert shards.documents_at(some).tolist() == [rows[n] for n in some]


def test_without_noted_documents_all_is_one(tmp_path):
    assert not ShardSet(written(tmp_path)).documents_at(np.array([3])).any()


def test_the_index_has_the_hash_of_each_file_and_of_the_stream(tmp_path):
    index = json.loads((with_documents(tmp_path) / INDEX_FILE).read_text())
    parts = [(tmp_path / file["name"]).read_bytes() for file in index["files"]]
    assert [file["hash"] for file in index["files"]] == [blake3(p).hexdigest() for p in parts]
    assert index["hash"] == blake3(b"".join(parts)).hexdigest()
    assert index["document_offsets"] == "documents.index"


def test_a_missing_index_of_documents_is_named_corrupt(tmp_path):
    (with_documents(tmp_path) / "documents.index").unlink()
    with pytest.raises(CorruptArtifactError, match=r"documents\.index"):
        ShardSet(tmp_path).documents_at(np.array([0]))


def test_who_asks_for_tokens_alone_never_reads_the_index_of_documents(tmp_path):
    (with_documents(tmp_path) / "documents.index").unlink()
    assert ShardSet(tmp_path).sequences_at(np.array([1])).tolist() == [STREAM[10:21]]
