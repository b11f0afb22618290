from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.workers.data.clean.drops import Drops, read_drops
from jupiterd.workers.samples.drop_files import STORED_CHARS, STORED_OF_REASON
from tests.support.workers.data_material import files_of, function, real


def written(folder, *drops):
    for one in drops:
        one.write(folder)
    return files_of(folder)


def dropped(samples, reason=DropReason.MINIFIED):
    found = Drops()
    for sample in samples:
        found.add(sample, reason)
    return found


SAMPLES = [real(function(number)) for number in range(100)]


def test_all_are_counted_and_some_of_each_reason_kept(tmp_path):
    drops = dropped(SAMPLES)
    drops.add(real("x"), DropReason.TOO_SHORT)
    assert drops.counts == {"dropped": 101, "dropped.minified": 100, "dropped.too-short": 1}
    drops.write(tmp_path)
    found = list(read_drops(tmp_path))
    assert [judgement.reason for _, judgement in found] == ["minified"] * STORED_OF_REASON + [
        "too-short"
    ]
    smallest = sorted(sample.id for sample in SAMPLES)[:STORED_OF_REASON]
    assert [sample.id for sample, _ in found[:-1]] == smallest


def test_the_same_are_kept_in_any_order_and_however_the_work_is_cut(tmp_path):
    whole = written(tmp_path / "whole", dropped(SAMPLES))
    assert written(tmp_path / "turned", dropped(SAMPLES[::-1])) == whole
    parts = Drops()
    for number in range(3):
        dropped(SAMPLES[number::3]).write(tmp_path / f"{number}")
        parts.add_examples(read_drops(tmp_path / f"{number}"))
    assert written(tmp_path / "parts", parts) == whole
    assert parts.counts["dropped"] == 0  # they have been counted already


def test_a_long_text_is_cut_and_keeps_its_name(tmp_path):
    sample = real("x" * 100_000)
    dropped([sample]).write(tmp_path)
    ((found, _),) = read_drops(tmp_path)
    assert (found.id, len(found.text)) == (sample.id, STORED_CHARS)


def test_of_what_is_only_counted_nothing_is_kept(tmp_path):
    drops = Drops()
    drops.count(DropReason.PURGED)
    drops.write(tmp_path)
    assert drops.counts == {"dropped": 1, "dropped.purged": 1}
    assert (drops.reasons(), list(read_drops(tmp_path))) == ("purged", [])
