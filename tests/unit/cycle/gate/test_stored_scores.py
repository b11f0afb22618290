"""A verdict is a function of the scores as they were stored, whoever computed them, and where."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cycle.gate.record import VERDICT_FILE, decide_on, read_score_lines, score_lines
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.gate.scores import ClozeScore, DocumentScore
from jupiterd.workers.evaluate.gate_verdict import write_verdict
from jupiterd.workers.evaluate.score_file import read_folders, write_sanity, write_scores
from tests.support.cycle.gate_material import documents, gaps

GIVEN = {
    "gate": {"alpha": 0.05, "margin_bpb": 0.005, "stratum_veto_bpb": 0.02, "max_forgetting": 0.02},
    "holdout": {"min_documents": 20, "min_clusters": 5},
    "look": 1, "incumbent": "s" * 64, "generator": "g" * 64, "round": 2,
}  # fmt: skip


def drawn(seed: int) -> list[DocumentScore]:
    """Scores whose every bit is drawn, as those of a model are."""
    source = random.Random(seed)
    return [
        replace(each, candidate_nats=each.candidate_nats * source.uniform(0.999, 1.001))
        for each in documents(source, 0.05)
    ]


def pieces_in(folder: Path, scores: list[DocumentScore], cloze: list[ClozeScore]) -> list[Path]:
    for number in range(3):
        write_scores(folder / str(number), scores[number::3], cloze[number::3])
    write_sanity(folder / "0", Sanity(loads=True, seed=1, completions=8, looping=1))
    return [folder / str(number) for number in range(3)]


def test_scores_are_stored_to_their_last_bit() -> None:
    scores = drawn(1)
    assert sorted(read_score_lines([score_lines(scores)]), key=lambda each: each.id) == sorted(
        scores, key=lambda each: each.id
    )


@pytest.mark.parametrize("seed", range(8))
def test_a_verdict_comes_again_from_its_own_folder_to_the_last_byte(
    tmp_path: Path, seed: int
) -> None:
    pieces = pieces_in(tmp_path / "pieces", drawn(seed), gaps(12, 3, 9))
    folder = tmp_path / "verdict"
    write_verdict(folder, read_folders(pieces), GIVEN)
    stored = (folder / VERDICT_FILE).read_text(encoding="utf-8")
    assert decide_on(read_folders([folder]), GIVEN)[1] == stored
    for order in ((2, 0, 1), (1, 2, 0)):
        assert decide_on(read_folders([pieces[n] for n in order]), GIVEN)[1] == stored
