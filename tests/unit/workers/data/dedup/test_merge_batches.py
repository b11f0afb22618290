import random
from dataclasses import replace

import pytest

from jupiterd.cycle.data.lineage import text_hash
from jupiterd.cycle.data.purge import Purge
from jupiterd.cycle.questions.question_file import DomainQuestion
from jupiterd.errors import EmptySourceError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.clean.clean_batch import TextRules, clean
from jupiterd.workers.data.clean.drops import read_drops
from jupiterd.workers.data.dedup.merge_batches import RoundBatches, unite
from jupiterd.workers.samples.sample_file import read_samples
from tests.support.workers.data_material import (
    files_of,
    function,
    real,
    run_worker,
    synthetic,
    write,
)


def long_function(number, name="compute"):
    """Return a function of some hundred words, another one for each number."""
    body = "\n".join(
        f"    step_{number}_{line} = first * {number * 1000 + line} + second" for line in range(30)
    )
    return f"def {name}_{number}(first, second):\n{body}\n    return step_{number}_0\n"


def near(number):
    """Return that function with one line changed."""
    return long_function(number).replace(f"step_{number}_7 = first", f"step_{number}_7 = third")


def do(tmp_path, batches, holdout=(), purged=(), questions=()):
    """Clean the batches, unite them, and return the counts of uniting."""
    folders = []
    for number, samples in enumerate(batches):
        folder = tmp_path / f"batch{number}"
        clean([write(folder / "samples", samples)], folder, TextRules("code:python"))
        folders.append(folder)
    held_out = write(tmp_path / "holdout", [real(text) for text in holdout])
    clean_ones, dropped = [x / "clean" for x in folders], [x / "dropped" for x in folders]
    found = RoundBatches(clean_ones, dropped, [held_out], Purge(purged), questions)
    return unite(found, tmp_path / "out", "code:python")


def kept(tmp_path):
    return list(read_samples(tmp_path / "out" / "kept"))


def texts(tmp_path):
    return {sample.text for sample in kept(tmp_path)}


def reasons(tmp_path):
    return sorted(str(dropped.reason) for _, dropped in read_drops(tmp_path / "out" / "dropped"))


def test_of_equal_texts_one_is_kept_and_it_is_the_real_one(tmp_path):
    first = [synthetic(function(1)), synthetic(function(2))]
    second = [synthetic(function(2), parent="q"), real(function(1)), real(function(3))]
    counts = do(tmp_path, [first, second])
    assert {(s.kind, s.text) for s in kept(tmp_path)} == {
        ("real", function(1)),
        ("synthetic", function(2)),
        ("real", function(3)),
    }
    assert counts == {
        "kept": 3,
        "kept_real": 2,
        "kept_synthetic": 1,
        "dropped": 2,
        "dropped.duplicate": 2,
    }


def test_of_nearly_equal_texts_the_real_one_is_kept_and_says_so(tmp_path):
    batch = [synthetic(long_function(1)), real(near(1)), real(long_function(2))]
    counts = do(tmp_path, [batch])
    assert texts(tmp_path) == {near(1), long_function(2)}
    marks = {sample.text: sample.duplicate_cluster for sample in kept(tmp_path)}
    assert marks == {near(1): real(near(1)).id, long_function(2): ""}
    assert counts["dropped.near-duplicate"] == 1


def test_among_real_ones_the_smallest_id_is_kept(tmp_path):
    twins = [real(long_function(1)), real(near(1))]
    do(tmp_path, [twins[:1], twins[1:]])
    (sample,) = kept(tmp_path)
    assert sample.id == min(twin.id for twin in twins)


def test_a_planted_held_out_text_never_comes_through_whoever_wrote_it(tmp_path):
    secret = long_function(7)
    hidden = f"{long_function(8)}\n\n{secret}\n{long_function(9)}"
    shortened = secret.replace("    step_7_3", "    other_7_3")
    batches = [
        [real(function(1)), real(secret), real(hidden)],
        [synthetic(secret), synthetic(shortened), synthetic(function(2))],
    ]
    counts = do(tmp_path, batches, holdout=[secret])
    assert texts(tmp_path) == {function(1), function(2)}
    assert counts["dropped.in-holdout"] == 3
    assert counts["dropped.duplicate"] == 1


def test_a_text_with_a_question_of_the_domain_s_own_and_its_answer_never_comes_through(tmp_path):
    asked = DomainQuestion("What does the function return for a list of no orders?", ("zero",))
    leaking = f"{long_function(7)}# {asked.question} It is zero.\n"
    batches = [[real(function(1)), real(leaking)], [synthetic(leaking)]]
    counts = do(tmp_path, batches, questions=[asked])
    assert texts(tmp_path) == {function(1)}
    assert counts["dropped.in-holdout"] == 1
    assert counts["dropped.duplicate"] == 1


def test_a_text_is_never_dropped_in_favour_of_one_that_leaks(tmp_path):
    """The middle text is near to a good one, and shares most of what is held out."""
    held_out = "\n".join(f"    held_{line} = out({line})" for line in range(12))
    good = long_function(1)
    leaking = good + held_out.replace("    ", "") + "\n"
    do(tmp_path, [[synthetic(good), real(leaking), real(function(3))]], holdout=[held_out])
    assert texts(tmp_path) == {good, function(3)}


def test_what_was_dropped_while_cleaning_can_still_be_looked_at(tmp_path):
    do(tmp_path, [[real(function(1)), real("x = 1")], [synthetic(function(2) + "def (\n")]])
    assert reasons(tmp_path) == ["too-short", "unparsable"]


def test_the_same_samples_in_another_order_and_cut_give_the_same_bytes(tmp_path, seed):
    chance = random.Random(seed)
    samples = [real(long_function(number)) for number in range(12)]
    samples += [synthetic(near(number)) for number in range(6)]
    samples += [
        replace(synthetic(function(number)), source_uri=f"test:{number}") for number in range(9)
    ]
    samples += [synthetic(function(number), parent="q") for number in range(5)]
    samples += [real("x = 1"), real("def (\n" * 20), real(long_function(40))]
    made = []
    for attempt, cuts in enumerate((1, 2, 4)):
        chance.shuffle(samples)
        folder = tmp_path / f"{attempt}"
        do(folder, [samples[cut::cuts] for cut in range(cuts)], holdout=[long_function(40)])
        made.append(files_of(folder / "out"))
    assert made[0] == made[1] == made[2]


def test_kept_samples_lie_by_id(tmp_path):
    do(tmp_path, [[real(function(number)) for number in range(30)]])
    ids = [sample.id for sample in kept(tmp_path)]
    assert ids == sorted(ids)


def test_when_nothing_real_is_left_it_says_why(tmp_path):
    with pytest.raises(EmptySourceError, match="left no real text: too-short"):
        do(tmp_path, [[real("x = 1")], [synthetic(function(2))]])


def test_the_worker_does_it_twice_with_equal_bytes(tmp_path):
    inputs = {"holdout.0": write(tmp_path / "h", [real(long_function(3))])}
    for number, first in enumerate((0, 15)):
        batch = write(
            tmp_path / f"s{number}", [real(function(n)) for n in range(first, first + 20)]
        )
        made = clean([batch], tmp_path / f"c{number}", TextRules("code:python"))
        assert made["dropped"] == 0
        for name in ("clean", "dropped"):
            inputs[f"{name}.{number}"] = tmp_path / f"c{number}" / name
    ends = [run_worker("unite", {"language": "code:python"}, inputs, tmp_path / x) for x in "ab"]
    assert ends[0] == ends[1]
    assert isinstance(ends[0], TaskFinished)
    assert ends[0].outputs == {"kept": "kept", "dropped": "dropped"}
    assert ends[0].counts["kept"] == 35
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_what_was_purged_is_dropped_before_it_can_hide_another_source_s_copy(tmp_path):
    texts = [long_function(number) for number in range(6)]
    copies = [real(texts[0], source="docs"), real(texts[0], source="code")]
    docs = [*copies, real(near(1), source="docs"), real(texts[1], source="code")]
    child = replace(synthetic(texts[3]), parents=(text_hash(near(1)),))
    grandchild = replace(synthetic(texts[4]), parents=(child.id,), depth=2)
    counts = do(tmp_path, [docs, [grandchild], [child]], purged=["docs"])
    kept = {(sample.source, sample.text) for sample in read_samples(tmp_path / "out" / "kept")}
    assert kept == {("code", texts[0]), ("code", texts[1])}
    assert counts["dropped.purged"] == counts["dropped"] == 4
    assert counts["left_out:docs"] == 4


def test_nothing_purged_is_written_anew(tmp_path):
    docs = [replace(real(text), source_uri="https://a.org/x") for text in (function(1), "x = 1")]
    counts = do(tmp_path, [[*docs, real(function(2)), real("y = 2")]], purged=["https://a.org"])
    assert (counts["dropped.purged"], counts["left_out:https://a.org"]) == (1, 1)
    shown = list(read_drops(tmp_path / "out" / "dropped"))
    assert [(sample.text, dropped.reason) for sample, dropped in shown] == [("y = 2", "too-short")]


def test_what_was_purged_is_counted_where_nothing_of_it_is_found_too(tmp_path):
    counts = do(tmp_path, [[real(function(1))]], purged=["https://a.org"])
    assert (counts["dropped"], counts["left_out:https://a.org"]) == (0, 0)
