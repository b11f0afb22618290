"""Texts that read least like the reference are left out where batches are united."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from jupiterd.cycle.data.purge import Purge
from jupiterd.cycle.domain.domain import Quality
from jupiterd.cycle.rounds.phase_summary import UNJUDGED_COUNT
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.clean.drops import read_drops
from jupiterd.workers.data.dedup.merge_batches import RoundBatches, unite
from jupiterd.workers.samples.sample_file import read_samples
from tests.support.cycle.prose import word
from tests.support.workers.data_material import files_of, real, run_worker, synthetic, write

BOOKS = Quality(like=("books",), keep_share=0.5)

_PROSE = [
    ["the old miller", "a tired traveller", "the schoolmaster", "her brother", "the ferryman"],
    ["walked slowly along", "looked back across", "had never crossed", "used to live near"],
    ["the river", "the stone bridge", "a field of barley", "the market square", "low hills"],
    ["before the rain came", "as he had every autumn", "because the winter had been long"],
]
_SPAM = [
    ["buy cheap", "order discount", "get free", "download the best", "claim exclusive"],
    ["watches online", "pills without prescription", "casino bonus", "followers", "loans today"],
    ["click here now", "limited offer", "act fast", "best price guaranteed", "100% sure"],
    ["subscribe to our newsletter", "no credit card required", "add to cart", "free shipping"],
]
_BOILERPLATE = [
    ["all rights reserved", "terms of service apply", "we use cookies", "privacy policy"],
    ["accept all cookies", "manage preferences", "contact us", "site map", "log in to continue"],
    ["copyright notice", "powered by our platform", "share this page", "back to top"],
]


def text(parts, chance, sentences=14):
    """Return such sentences, among words that mean nothing: no two texts are nearly equal."""
    words = [each for _ in range(sentences) for each in (*map(chance.choice, parts), ".")]
    for _ in range(4 * sentences):
        words.insert(chance.randrange(len(words)), word(chance.randrange(400)))
    return " ".join(words)


def material(seed):
    """Return a reference, good texts and as many bad ones; `cluster_id` says what each is."""
    chance = random.Random(seed)
    books = [real(text(_PROSE, chance), "book", source="books") for _ in range(60)]
    good = [real(text(_PROSE, chance), "good", source="web") for _ in range(40)]
    spam = [real(text(_SPAM, chance), "spam", source="web") for _ in range(20)]
    boilerplate = [real(text(_BOILERPLATE, chance), "boiler", source="web") for _ in range(20)]
    return [*books, *good, *spam, *boilerplate]


def do(tmp_path, samples, quality=BOOKS, cuts=1, holdout=(), purged=()):
    """Unite the samples and return the counts."""
    batches = [
        write(tmp_path / f"batch{cut}", sorted(samples[cut::cuts], key=lambda sample: sample.id))
        for cut in range(cuts)
    ]
    held_out = write(tmp_path / "holdout", [real(text) for text in holdout])
    found = RoundBatches(batches, [], [held_out], Purge(purged))
    return unite(found, tmp_path / "out", "en", quality=quality)


def kept(tmp_path):
    return list(read_samples(tmp_path / "out" / "kept"))


def kinds(tmp_path):
    return Counter(sample.cluster_id for sample in kept(tmp_path))


def test_spam_and_boilerplate_go_and_prose_stays(tmp_path, seed):
    counts = do(tmp_path, material(seed))
    assert kinds(tmp_path) == {"book": 60, "good": 40}
    assert counts["dropped.quality"] == counts["dropped"] == 40
    assert UNJUDGED_COUNT not in counts


def test_unless_the_domain_asks_nothing_is_judged(tmp_path, seed):
    assert do(tmp_path, material(seed), None)["dropped"] == 0
    assert len(kept(tmp_path)) == 140
    assert all(not sample.filter_scores for sample in kept(tmp_path))


def test_what_was_judged_carries_its_score_whether_it_is_kept_or_dropped(tmp_path, seed):
    do(tmp_path, material(seed))
    judged = [sample for sample in kept(tmp_path) if sample.cluster_id == "good"]
    dropped = [sample for sample, _ in read_drops(tmp_path / "out" / "dropped")]
    assert all(sample.filters.endswith("quality@1") for sample in [*judged, *dropped])
    lowest = min(sample.filter_scores["quality"] for sample in judged)
    assert lowest > max(sample.filter_scores["quality"] for sample in dropped)
    reference = [sample for sample in kept(tmp_path) if sample.source == "books"]
    assert all("quality" not in sample.filter_scores for sample in reference)


def test_the_reference_stays_even_where_it_reads_like_spam(tmp_path, seed):
    chance = random.Random(seed)
    odd = real(text(_SPAM, chance), "odd", source="books")
    twin = replace(odd, source="web")  # another source has the same text
    near = real(f"{odd.text} And more.", "odd", source="web")
    do(tmp_path, [*material(seed), odd, twin, near], replace_share(0.1))
    assert kinds(tmp_path)["book"] == 60
    assert kinds(tmp_path)["odd"] == 1


def replace_share(share):
    return BOOKS.model_copy(update={"keep_share": share})


def test_of_nearly_equal_texts_the_reference_s_is_kept(tmp_path, seed):
    chance = random.Random(seed)
    spam = text(_SPAM, chance, 60)
    twins = [real(f"{spam} End {n}.", "near", source="web") for n in "abcdefgh"]
    own = real(f"{spam} Ours.", "near", source="books")
    do(tmp_path, [*material(seed), *twins, own])
    assert [sample.source for sample in kept(tmp_path) if sample.cluster_id == "near"] == ["books"]


def test_generated_texts_meet_the_bound_and_do_not_shape_it(tmp_path, seed):
    chance = random.Random(seed + 1)  # other texts than those of the material
    made = [
        replace(synthetic(text(parts, chance)), cluster_id=name, source="books")
        for name, parts in (("made prose", _PROSE), ("made spam", _SPAM))
        for _ in range(30)
    ]
    do(tmp_path / "without", material(seed))
    do(tmp_path / "with", [*material(seed), *made])
    assert kinds(tmp_path / "with") == kinds(tmp_path / "without") + Counter({"made prose": 30})


def test_what_is_purged_or_held_out_shapes_nothing(tmp_path, seed):
    """A reader of scores mustn't learn what was purged, nor training what is held out."""
    chance = random.Random(seed)
    secrets = [text(_BOILERPLATE, chance, 30) for _ in range(20)]
    held_out = [real(secret, source="books") for secret in secrets[:10]]
    purged = [replace(real(secret, source="books"), source_uri="https://a.org/x")
              for secret in secrets[10:]]  # fmt: skip
    do(tmp_path / "without", material(seed))
    do(tmp_path / "with", [*material(seed), *held_out, *purged],
       holdout=secrets[:10], purged=["https://a.org"])  # fmt: skip
    assert kept(tmp_path / "with") == kept(tmp_path / "without")


def test_without_a_text_of_the_reference_nothing_is_judged_and_that_is_told(tmp_path, seed):
    counts = do(tmp_path, material(seed), purged=["books"])
    assert counts[UNJUDGED_COUNT] == 1
    assert kinds(tmp_path) == {"good": 40, "spam": 20, "boiler": 20}


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_such_a_share_of_the_others_is_kept(tmp_path, seed, share):
    do(tmp_path, material(seed), replace_share(share))
    assert len(kept(tmp_path)) == 60 + round(80 * share)


def test_the_same_samples_in_another_order_and_cut_give_the_same_bytes(tmp_path, seed):
    chance = random.Random(seed)
    samples = material(seed)
    samples += [replace(sample, source="books") for sample in samples[60:64]]
    made = []
    for cuts in (1, 2, 4):
        chance.shuffle(samples)
        do(tmp_path / f"{cuts}", samples, replace_share(0.6), cuts)
        made.append(files_of(tmp_path / f"{cuts}" / "out"))
    assert made[0] == made[1] == made[2]


def test_the_worker_is_told_by_the_domain(tmp_path, seed):
    samples = sorted(material(seed), key=lambda sample: sample.id)
    inputs = {"clean.0": write(tmp_path / "batch", samples)}
    params = {"language": "en", "quality": BOOKS.model_dump(mode="json")}
    ends = [run_worker("unite", params, inputs, tmp_path / name) for name in "ab"]
    assert isinstance(ends[0], TaskFinished)
    assert ends[0].counts["dropped.quality"] == 40
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
