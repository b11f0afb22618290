"""Where there is no student yet: the stronger baseline is to be beaten, chosen on other text."""

import json
from dataclasses import replace
from random import Random

import pytest

from jupiterd.cycle.data.split import DEV
from jupiterd.cycle.gate.baseline import CHOICE, Baseline, strongest_baseline
from jupiterd.cycle.gate.case import Findings
from jupiterd.cycle.gate.record import Material, decide_on
from jupiterd.cycle.gate.scores import ClozeScore
from jupiterd.cycle.rounds.explanation import explain
from jupiterd.cycle.rounds.round_course import RoundCourse
from tests.support.cycle.gate_material import NATS_PER_BPB, documents

GIVEN = {
    "gate": {"alpha": 0.05, "margin_bpb": 0.005, "stratum_veto_bpb": 0.02},
    "holdout": {"min_documents": 12, "min_clusters": 6},
    "look": 1,
    "round": 1,
    "candidate": "c" * 64,
    "incumbent": "",
    "generator": "",
    "baseline": CHOICE,
}


def needing(rows, by_bytes, by_tokens, **changes):
    """Return the rows as they are in a first round, with what each baseline needs of bits."""
    byte_nats, unigram_nats = by_bytes * NATS_PER_BPB, by_tokens * NATS_PER_BPB
    return [
        replace(
            row,
            incumbent_nats=byte_nats,
            generator_nats=byte_nats,
            byte_nats=byte_nats,
            unigram_nats=unigram_nats,
            **changes,
        )
        for row in rows
    ]


@pytest.fixture
def rows():
    """Give documents of the gate and of development, whose candidate needs 2.0 bits per byte."""
    seed = 3
    print(f"seed {seed}")
    drawn = documents(Random(seed), 0.1, count=40)
    return drawn[:30], [replace(each, id=f"dev{each.id}", part=DEV) for each in drawn[30:]]


def decided(scores, **changes):
    verdict, text = decide_on(Material(scores, Findings()), {**GIVEN, **changes})
    return verdict, json.loads(text)


def test_development_text_chooses_and_not_the_gates(rows):
    gate, dev = rows
    scores = [*needing(gate, 2.9, 2.7), *needing(dev, 2.9, 2.95)]
    assert strongest_baseline(scores) is Baseline.BYTES
    verdict, document = decided(scores)
    assert verdict.incumbent_bpb == pytest.approx(2.9)
    assert document["verdict"]["baseline"] == "order-2 byte model"


def test_a_student_that_only_beats_the_weaker_baseline_is_not_promoted(rows):
    gate, dev = rows
    scores = needing([*gate, *dev], 2.9, 1.99)
    assert decided(scores, baseline=None)[0].decision == "PROMOTE"
    verdict, document = decided(scores)
    assert verdict.decision != "PROMOTE"
    assert verdict.incumbent_bpb == verdict.generator_bpb == pytest.approx(1.99)
    assert verdict.dev.incumbent_bpb == pytest.approx(1.99)
    assert "a count of tokens, for there is no last student yet" in "\n".join(explain(document))


def test_one_that_knows_less_than_counting_is_told_to_train_and_not_to_hold_out_more(rows):
    gate, dev = rows
    hardly_trained = needing([*gate, *dev], 2.9, 1.5)
    told = "\n".join(explain(decided(hardly_trained)[1]))
    assert "What would have been needed: more training" in told
    assert "would take about" not in told
    learned = "\n".join(explain(decided(needing([*gate, *dev], 2.9, 2.7))[1]))
    assert "more training" not in learned


def test_without_development_text_byte_triples_stay(rows):
    assert strongest_baseline(needing(rows[0], 2.9, 2.7)) is Baseline.BYTES


def test_who_is_there_is_compared_with_and_no_baseline(rows):
    gate, dev = rows
    scores = [replace(each, unigram_nats=1.0) for each in [*gate, *dev]]
    verdict, document = decided(scores, incumbent="a" * 64, generator="b" * 64)
    assert verdict.incumbent_bpb == pytest.approx(2.1, abs=0.01)
    assert "baseline" not in document["verdict"]
    verdict, document = decided(scores, incumbent="a" * 64)
    assert verdict.incumbent_bpb == pytest.approx(2.1, abs=0.01)
    assert verdict.generator_bpb < 1.0
    assert document["verdict"]["baseline"] == "unigram"


def test_a_verdict_of_before_comes_to_the_same_again(rows):
    gate, dev = rows
    given = {name: each for name, each in GIVEN.items() if name != "baseline"}
    verdict, text = decide_on(Material(needing([*gate, *dev], 2.9, 1.5), Findings()), given)
    assert verdict.incumbent_bpb == pytest.approx(2.9)
    assert "baseline" not in json.loads(text)["verdict"]


def test_a_baseline_that_gives_no_finite_score_is_not_the_stronger(rows):
    gate, dev = rows
    scores = needing([*gate, *dev], 2.9, float("inf"))
    assert strongest_baseline(scores) is Baseline.BYTES


def test_where_nobody_generates_the_count_that_filled_the_gaps_is_named(rows):
    gate, dev = rows
    scores = needing([*gate, *dev], 2.9, 2.95)
    right = {"candidate_right": False, "incumbent_right": True, "generator_right": True}
    gaps = [ClozeScore(f"gap{n}", "one", "word", **right) for n in range(30)]
    given = {**GIVEN, "nobody_generates": True, "synthetic_share": "30.0% to begin with"}
    verdict, text = decide_on(Material(scores, Findings(cloze=gaps)), given)
    assert verdict.reason == (
        "worse than a count of byte triples at gaps: fills 0 of 30 gaps rightly, "
        "a count of byte triples 30"
    )
    told = "\n".join(explain(json.loads(text)))
    assert "Synthetic share" not in told
    assert "is it at least as good as counting alone?" in told.lower()
    assert "The generator" not in told


def test_a_last_round_that_was_held_after_too_few_steps_says_so_and_what_to_type(rows):
    gate, dev = rows
    _, document = decided(needing([*gate, *dev], 2.9, 1.99))
    document["verdict"]["decision"] = "HOLD"
    course = RoundCourse(
        "c0ffee00", is_last=True, steps=30, tokens=30_720, text_tokens=400_000, max_steps=30
    )
    told = "\n".join(explain(document, course))
    assert "this was the last round: jupiterctl cycle extend c0ffee00 --rounds N asks again" in told
    assert "it trained 30 steps, under a tenth of a pass over the text, for --max-steps" in told
    for other in (replace(course, max_steps=0), replace(course, tokens=400_000)):
        assert "Likely cause" not in "\n".join(explain(document, other))
