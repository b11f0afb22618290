import json

import pytest

from jupiterd.cycle.domain import LicensePolicy
from jupiterd.cycle.lineage import text_hash
from jupiterd.errors import EmptySourceError
from jupiterd.frames import TaskFinished
from jupiterd.workers.data.filter import REASONS_FILE, Sieve, filter_samples
from jupiterd.workers.data.sample_file import read_lines, read_samples
from tests.unit.workers.data_material import (
    files_of,
    function,
    real,
    run_worker,
    synthetic,
    write,
)


def sieve(holdout=(), **policy):
    return Sieve("code:python", LicensePolicy(**policy), [text_hash(text) for text in holdout])


def reasons_of(folder):
    return [json.loads(line)["reason"] for line in read_lines(folder / "dropped" / REASONS_FILE)]


def test_each_sample_is_kept_or_dropped_with_its_reason(tmp_path):
    train = write(
        tmp_path / "train",
        [real(function(1)), real("x = 1"), real(function(1)), real(function(2) + "def (\n")],
    )
    counts = filter_samples(sieve(), [train], [], tmp_path)
    assert [s.text for s in read_samples(tmp_path / "kept")] == [function(1)]
    assert reasons_of(tmp_path) == ["too-short", "duplicate", "unparsable"]
    assert len(list(read_samples(tmp_path / "dropped"))) == 3
    assert counts == {
        "kept": 1,
        "kept_real": 1,
        "kept_synthetic": 0,
        "dropped": 3,
        "dropped.too-short": 1,
        "dropped.duplicate": 1,
        "dropped.unparsable": 1,
    }


def test_held_out_text_never_comes_through_whoever_wrote_it(tmp_path):
    train = write(tmp_path / "train", [real(function(1)), real(function(2))])
    recited = write(tmp_path / "synthetic", [synthetic(function(3)), synthetic(function(4))])
    counts = filter_samples(sieve([function(1), function(3)]), [train], [recited], tmp_path)
    kept = [s.text for s in read_samples(tmp_path / "kept")]
    assert kept == [function(2), function(4)]
    assert counts["dropped.in-holdout"] == 2


def test_of_equal_texts_the_real_one_is_kept_and_rounds_are_told_apart(tmp_path):
    train = write(tmp_path / "train", [real(function(1))])
    first = write(tmp_path / "s1", [synthetic(function(1)), synthetic(function(2))])
    second = write(tmp_path / "s2", [synthetic(function(2)), synthetic(function(3))])
    filter_samples(sieve(), [train], [first, second], tmp_path)
    kept = [(s.kind, s.text) for s in read_samples(tmp_path / "kept")]
    assert kept == [
        ("real", function(1)),
        ("synthetic", function(2)),
        ("synthetic", function(3)),
    ]


def test_a_rejected_generated_sample_is_not_trained_on(tmp_path):
    train = write(tmp_path / "train", [real(function(1))])
    made = write(tmp_path / "s", [synthetic("def broken(:\n" + function(2))])
    counts = filter_samples(sieve(), [train], [made], tmp_path)
    assert counts["kept_synthetic"] == 0
    assert [s.kind for s in read_samples(tmp_path / "kept")] == ["real"]


def test_a_licence_that_the_policy_does_not_permit_is_dropped(tmp_path):
    train = write(tmp_path / "t", [real(function(1)), real(function(2), license_id="unknown")])
    filter_samples(sieve(), [train], [], tmp_path)
    assert reasons_of(tmp_path) == ["license"]


def test_a_text_dropped_once_does_not_make_its_twin_a_duplicate(tmp_path):
    train = write(tmp_path / "t", [real(function(1), license_id="unknown"), real(function(1))])
    counts = filter_samples(sieve(), [train], [], tmp_path)
    assert counts["kept_real"] == 1


def test_when_nothing_real_is_left_it_says_so(tmp_path):
    train = write(tmp_path / "train", [real("x = 1")])
    made = write(tmp_path / "s", [synthetic(function(2))])
    with pytest.raises(EmptySourceError, match="left no real text of 1 documents"):
        filter_samples(sieve(), [train], [made], tmp_path)


def test_the_worker_does_it_twice_with_equal_bytes(tmp_path):
    inputs = {
        "train.0": write(tmp_path / "t0", [real(function(n)) for n in range(20)]),
        "train.1": write(tmp_path / "t1", [real(function(n)) for n in range(15, 30)]),
        "holdout.0": write(tmp_path / "h", [real(function(3))]),
        "synthetic.0": write(tmp_path / "s", [synthetic(function(40))]),
    }
    params = {"language": "code:python", "license_policy": {"allow": [], "unknown": "deny"}}
    ends = [run_worker("filter", params, inputs, tmp_path / name) for name in "ab"]
    assert ends[0] == ends[1]
    assert isinstance(ends[0], TaskFinished)
    assert ends[0].outputs == {"kept": "kept", "dropped": "dropped"}
    assert ends[0].counts["kept"] == 30
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
