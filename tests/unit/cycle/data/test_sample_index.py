import random

import pytest

from jupiterd.cycle.data.lineage import text_hash
from jupiterd.cycle.data.sample_index import IndexBuilder, SampleIndex, line_in, pack_frame
from jupiterd.errors import Bug, CorruptArtifactError

SEED = 20261


def built(ids, frame_size=7):
    """Return (bytes of the frames, index) of samples whose line is their id."""
    builder, frames = IndexBuilder(), []
    for start in range(0, len(ids), frame_size):
        lines = [f"{id_}\n".encode() for id_ in ids[start : start + frame_size]]
        for number, id_ in enumerate(ids[start : start + frame_size]):
            builder.note(id_, number * 65)
        frames.append(pack_frame(lines))
        builder.close_frame(len(frames[-1]))
    return b"".join(frames), builder.encode()


IDS = [text_hash(str(number)) for number in range(500)]


def test_every_sample_is_found_where_it_stands():
    data, index_bytes = built(IDS)
    index = SampleIndex(memoryview(index_bytes))
    assert index.samples == 500
    for id_ in IDS:
        (place,) = index.find(id_)
        assert line_in(data[place.first : place.end], place.line_at) == id_


@pytest.mark.parametrize("digits", [1, 2, 3, 5, 63, 64])
def test_a_prefix_finds_exactly_those_that_begin_so(digits):
    index = SampleIndex(memoryview(built(IDS)[1]))
    for id_ in random.Random(SEED).sample(IDS, 40):
        wanted = sorted(each for each in IDS if each.startswith(id_[:digits]))
        assert [place.id for place in index.find(id_[:digits], 1000)] == wanted


def test_what_is_not_there_is_not_found():
    index = SampleIndex(memoryview(built(IDS)[1]))
    assert index.find(text_hash("another")) == []
    assert index.find("f" * 64) == index.find("0" * 64) == []
    assert SampleIndex(memoryview(IndexBuilder().encode())).find("a") == []


def test_no_more_are_found_than_were_asked_for():
    assert len(SampleIndex(memoryview(built(IDS)[1])).find("", 3)) == 3


def test_a_sample_that_stands_twice_is_found_twice():
    index = SampleIndex(memoryview(built([IDS[0], *IDS])[1]))
    assert len(index.find(IDS[0])) == 2


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d[:10], lambda d: b"X" + d[1:]])
def test_a_damaged_index_is_named_so(damage):
    with pytest.raises(CorruptArtifactError):
        SampleIndex(memoryview(damage(built(IDS)[1])))


def test_a_damaged_frame_is_named_so():
    data, index_bytes = built(IDS)
    place = SampleIndex(memoryview(index_bytes)).find(IDS[0])[0]
    frame = data[place.first : place.end]
    for damaged in (b"", frame[:-3], b"\0" * len(frame)):
        with pytest.raises(CorruptArtifactError):
            line_in(damaged, 0)
    with pytest.raises(CorruptArtifactError):
        line_in(frame, 1 << 20)


@pytest.mark.parametrize("wrong", ["", "abc", "z" * 64, "a" * 66])
def test_only_an_id_can_be_noted(wrong):
    with pytest.raises(Bug):
        IndexBuilder().note(wrong, 0)
