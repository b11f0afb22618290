import pytest

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.sample_index import (
    FRAME_BYTES,
    INDEX_FILE,
    MAX_FRAME_BYTES,
    SampleIndex,
    line_in,
)
from jupiterd.cycle.domain.data_sources import MAX_DOCUMENT_BYTES
from jupiterd.errors import CorruptArtifactError
from jupiterd.store.sample_lookup import find_samples, read_sample
from jupiterd.workers.data.sorted_samples import SortedSampleWriter
from jupiterd.workers.samples.sample_file import FILE_NAME, read_all, read_samples
from tests.support.workers.data_material import files_of, real, synthetic, write

SAMPLES = [real("one\r\ntwo\u2028three\x85\n"), real("\u00e4\U0001f600"), synthetic("four")]


def test_samples_come_back_as_they_were(tmp_path):
    assert list(read_samples(write(tmp_path / "a", SAMPLES))) == SAMPLES


def test_equal_samples_give_equal_bytes(tmp_path):
    first, second = write(tmp_path / "a", SAMPLES), write(tmp_path / "b", SAMPLES)
    assert files_of(first) == files_of(second)


def test_several_folders_are_read_one_after_the_other(tmp_path):
    folders = [write(tmp_path / name, [real(name)]) for name in "ab"]
    assert [sample.text for sample in read_all(folders)] == ["a", "b"]


def test_an_empty_folder_of_samples_is_no_error(tmp_path):
    assert list(read_samples(write(tmp_path / "a", []))) == []


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: b"\0" * 40 + data[40:], lambda _: b""]
)
def test_a_damaged_file_is_named_so(tmp_path, damage):
    many = [real(f"text {number} {number * 7919}") for number in range(2000)]
    path = write(tmp_path / "a", many) / FILE_NAME
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CorruptArtifactError):
        list(read_samples(path.parent))


def test_a_file_cut_off_between_two_frames_is_named_so(tmp_path):
    folder = write(tmp_path / "a", [real(f"{number} " * 20_000) for number in range(20)])
    path = folder / FILE_NAME
    data = path.read_bytes()
    place = SampleIndex(memoryview((folder / INDEX_FILE).read_bytes())).find("")[0]
    assert 0 < place.end < len(data)
    path.write_bytes(data[: place.end])
    with pytest.raises(CorruptArtifactError, match="cut off"):
        list(read_samples(folder))


def test_every_sample_is_found_by_its_id_without_reading_the_others(tmp_path):
    many = [real(f"{number} " * 3000) for number in range(200)]
    folder = write(tmp_path / "a", many)
    index = SampleIndex(memoryview((folder / INDEX_FILE).read_bytes()))
    data = (folder / FILE_NAME).read_bytes()
    for sample in many:
        (place,) = index.find(sample.id)
        assert Sample.from_json(line_in(data[place.first : place.end], place.line_at)) == sample
        assert place.end - place.first < len(data) / 3


def test_samples_that_were_sorted_are_found_too(tmp_path):
    with SortedSampleWriter(tmp_path / "a") as writer:
        for sample in SAMPLES:
            writer.add(sample)
    index = SampleIndex(memoryview((tmp_path / "a" / INDEX_FILE).read_bytes()))
    assert [place.id for place in index.find("")] == sorted(sample.id for sample in SAMPLES)


def test_a_sample_of_the_largest_document_is_found_again(tmp_path):
    """JSON makes six bytes of each of these characters."""
    sample = real("\x01" * (12 << 20))
    folder = write(tmp_path / "a", [sample])
    (place,) = find_samples(folder, sample.id)
    assert read_sample(folder, place).text == sample.text
    assert FRAME_BYTES + 6 * MAX_DOCUMENT_BYTES < MAX_FRAME_BYTES
