import pytest

from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.data.sample_file import FILE_NAME, read_all, read_samples
from tests.unit.workers.data_material import files_of, real, synthetic, write

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
