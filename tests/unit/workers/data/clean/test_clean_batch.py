from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.base.licenses import LicensePolicy
from jupiterd.cycle.domain.filters import FILTERS
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.clean.clean_batch import TextRules, clean
from jupiterd.workers.data.clean.drops import read_drops
from jupiterd.workers.samples.sample_file import read_samples
from tests.support.cycle.prose import GOOD
from tests.support.workers.data_material import (
    files_of,
    function,
    real,
    run_worker,
    synthetic,
    write,
)

GERMAN = (
    "Der Fluss entspringt in den Bergen nördlich der Stadt, und die Menschen leben seit langer "
    "Zeit an seinen Ufern. Sie sagen, er trete niemals über die Ufer, doch hat das keiner je "
    "gemessen.\nIm Frühling ist das Wasser kalt und klar. Später im Jahr wird es braun, weil die "
    "Bauern weiter oben den Schlamm von den Feldern waschen. Eine Brücke aus Stein führt bei der "
    "alten Mühle hinüber. Im Sommer schwimmen dort die Kinder."
)


def do(tmp_path, samples, language="code:python", **policy):
    """Clean the samples and return the counts."""
    batch = write(tmp_path / "batch", samples)
    return clean([batch], tmp_path, TextRules(language, LicensePolicy(**policy)))


def test_each_sample_is_kept_or_dropped_with_its_reason(tmp_path):
    counts = do(tmp_path, [real(function(1)), real("x = 1"), real(function(2) + "def (\n")])
    assert [s.text for s in read_samples(tmp_path / "clean")] == [function(1)]
    assert counts == {"dropped": 2, "dropped.too-short": 1, "dropped.unparsable": 1}
    found = {
        sample.text: judgement.reason for sample, judgement in read_drops(tmp_path / "dropped")
    }
    assert found == {
        "x = 1": DropReason.TOO_SHORT,
        function(2) + "def (\n": DropReason.UNPARSABLE,
    }


def test_what_is_kept_carries_the_filters_and_their_scores(tmp_path):
    do(tmp_path, [real(GOOD)], "en")
    (kept,) = read_samples(tmp_path / "clean")
    assert kept.filters == FILTERS
    assert kept.filter_scores["language"] > 0.9
    assert kept.filter_scores["words"] > 90


def test_samples_are_written_by_id_in_whatever_order_they_came(tmp_path):
    samples = [real(function(number)) for number in range(20)]
    for name, order in (("a", samples), ("b", samples[::-1])):
        do(tmp_path / name, order)
        ids = [sample.id for sample in read_samples(tmp_path / name / "clean")]
        assert ids == sorted(sample.id for sample in samples)
    assert files_of(tmp_path / "a" / "clean") == files_of(tmp_path / "b" / "clean")


def test_prose_in_another_language_is_dropped(tmp_path):
    assert do(tmp_path / "de", [real(GERMAN)], "de")["dropped"] == 0
    assert do(tmp_path / "fr", [real(GERMAN)], "fr") == {
        "dropped": 1,
        "dropped.other-language": 1,
    }


def test_a_licence_that_the_policy_does_not_permit_is_dropped(tmp_path):
    samples = [real(function(1)), real(function(2), license_id="unknown")]
    assert do(tmp_path, samples) == {"dropped": 1, "dropped.license": 1}


def test_the_worker_does_it_twice_with_equal_bytes(tmp_path):
    samples = [real(function(n)) for n in range(20)] + [synthetic("x = 1"), real("def (\n" * 20)]
    inputs = {"samples": write(tmp_path / "batch", samples)}
    params = {"language": "code:python", "license_policy": {"allow": [], "unknown": "deny"}}
    ends = [run_worker("clean", params, inputs, tmp_path / name) for name in "ab"]
    assert ends[0] == ends[1]
    assert isinstance(ends[0], TaskFinished)
    assert ends[0].outputs == {"clean": "clean", "dropped": "dropped"}
    assert ends[0].counts["dropped"] == 2
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert set(files_of(tmp_path / "a")) == {
        "clean/samples.index",
        "clean/samples.jsonl.zst",
        "dropped/reasons.jsonl.zst",
        "dropped/samples.index",
        "dropped/samples.jsonl.zst",
    }


def test_the_pieces_of_a_batch_are_the_batch(tmp_path):
    batch = write(tmp_path / "batch", [real(function(number)) for number in range(23)])
    params = {"language": "code:python", "license_policy": {"allow": ["PSF-2.0"]}}
    found = []
    for piece in range(3):
        told = {**params, "piece": piece, "pieces": 3}
        end = run_worker("clean", told, {"samples": batch}, tmp_path / f"out{piece}")
        assert isinstance(end, TaskFinished), end
        found += read_samples(tmp_path / f"out{piece}" / "clean")
    whole = run_worker("clean", params, {"samples": batch}, tmp_path / "whole")
    assert isinstance(whole, TaskFinished), whole
    assert sorted(found, key=lambda each: each.id) == [*read_samples(tmp_path / "whole" / "clean")]
    assert len({sample.id for sample in found}) == 23
