import pytest

from jupiterd.cycle.data.document_index import DocumentIndex, DocumentIndexBuilder, DocumentSpan
from jupiterd.cycle.data.lineage import text_hash
from jupiterd.errors import CorruptArtifactError

IDS = [text_hash(str(number)) for number in range(9)]
FIRSTS = [0, 3, 4, 10, 11, 30, 31, 50, 90]


def built(tokens=100):
    builder = DocumentIndexBuilder()
    for sample_id, first in zip(IDS, FIRSTS, strict=True):
        builder.note(sample_id, first)
    return builder.encode(tokens)


def test_every_token_is_of_the_document_that_began_last():
    index = DocumentIndex(memoryview(built()))
    for offset in range(100):
        number = max(n for n, first in enumerate(FIRSTS) if first <= offset)
        end = [*FIRSTS, 100][number + 1]
        assert index.at(offset) == DocumentSpan(number, IDS[number], FIRSTS[number], end)


@pytest.mark.parametrize("offset", [-1, 100, 1 << 40])
def test_no_document_is_beyond_the_stream(offset):
    assert DocumentIndex(memoryview(built())).at(offset) is None


def test_every_sample_is_found_in_the_stream():
    index = DocumentIndex(memoryview(built()))
    assert [index.of(id_).first for id_ in IDS] == FIRSTS
    assert index.of(text_hash("another")) is None
    assert index.of("f" * 64) is None


def test_no_document_at_all_is_no_error():
    index = DocumentIndex(memoryview(DocumentIndexBuilder().encode(0)))
    assert index.at(0) is None
    assert index.of(IDS[0]) is None


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d[:10], lambda d: b"X" + d[1:]])
def test_a_damaged_index_is_named_so(damage):
    with pytest.raises(CorruptArtifactError):
        DocumentIndex(memoryview(damage(built())))
