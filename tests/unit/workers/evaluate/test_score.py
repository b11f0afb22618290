import dataclasses
import math

import numpy as np
import pytest

from jupiterd.cycle.data.purge import Purge
from jupiterd.cycle.gate.record import SCORES_FILE
from jupiterd.cycle.gate.scores import GENERAL, DocumentScore
from jupiterd.cycle.phases.evaluate import GENERAL_TEXT
from jupiterd.errors import CorruptArtifactError, EmptySourceError, UsageError
from jupiterd.workers.evaluate.byte_model import count_bytes
from jupiterd.workers.evaluate.documents import ScoringLimits, choose_documents, cut_text
from jupiterd.workers.evaluate.general_text import general_documents
from jupiterd.workers.evaluate.score import ScoreInputs, ScoreParams, score
from jupiterd.workers.evaluate.score_file import read_folders, write_scores
from jupiterd.workers.evaluate.score_table import count_tokens
from jupiterd.workers.evaluate.windows import BatchSize, Window, batches_of, windows_of
from tests.support.workers.data_material import function, real, synthetic, write

LIMITS = ScoringLimits(min_document_bytes=50, max_document_bytes=200, max_cluster_documents=3)


# Which documents


def held_out():
    return [real(function(n), cluster=f"module{n // 5}") for n in range(40)]


def test_the_pieces_share_the_documents_out_without_loss_or_overlap():
    pieces = [choose_documents(held_out(), LIMITS, piece, 3) for piece in range(3)]
    ids = [document.id for piece in pieces for document in piece]
    assert len(ids) == len(set(ids)) == 24  # 8 clusters of 3
    assert {len(piece) for piece in pieces} == {8}


def test_a_document_is_chosen_once_however_often_and_wherever_it_was_collected():
    assert choose_documents(held_out() * 2, LIMITS, 0, 1) == choose_documents(
        reversed(held_out()), LIMITS, 0, 1
    )


def test_tiny_documents_are_left_out_and_long_ones_cut():
    samples = [real("x = 1\n"), real(function(1, body_lines=50))]
    (document,) = choose_documents(samples, LIMITS, 0, 1)
    assert document.size_bytes == len(document.text) == 200
    assert document.stratum == "python_stdlib"


@pytest.mark.parametrize(("size", "text"), [(1, "a"), (2, "a"), (3, "a\u00e4"), (6, "a\u00e4")])
def test_a_cut_falls_between_characters(size, text):
    assert cut_text("a\u00e4\U0001f600", size) == text


# The model that was brought


def test_general_text_is_scored_beside_where_a_model_was_brought_and_shared_out(tmp_path):
    folders = [write(tmp_path / "h", held_out())], [write(tmp_path / "k", [real(function(99))])]
    inputs = ScoreInputs(tmp_path, None, folders[1], folders[0], base=tmp_path / "base")
    pieces = [
        score(inputs, ScoreParams(n, 2, LIMITS, general_text=GENERAL_TEXT)).documents
        for n in range(2)
    ]
    general = [[row for row in piece if row.part == GENERAL] for piece in pieces]
    whole = general_documents(GENERAL_TEXT)
    assert sorted(row.id for piece in general for row in piece) == sorted(d.id for d in whole)
    assert abs(len(general[0]) - len(general[1])) <= 1
    assert all(row.base_nats is not None for piece in pieces for row in piece)
    plain = score(dataclasses.replace(inputs, base=None), ScoreParams(0, 2, LIMITS)).documents
    assert {row.part for row in plain} == {"gate"}
    assert all(row.base_nats is None for row in plain)


def test_the_general_text_is_of_four_sources_and_a_hundred_kilobytes():
    whole = general_documents(GENERAL_TEXT)
    assert len({document.cluster for document in whole}) >= 4
    assert 100_000 <= sum(document.size_bytes for document in whole) <= 200_000
    assert len({document.id for document in whole}) == len(whole)
    assert general_documents("") == []
    with pytest.raises(UsageError, match="general text general@0 isn't here"):
        general_documents("general@0")


# Windows


@pytest.mark.parametrize("tokens", [1, 7, 8, 9, 14, 15, 100, 101])
def test_windows_score_each_token_once_with_a_quarter_of_context(tokens):
    windows = list(windows_of(3, tokens, 8))
    scored = [place for window in windows for place in range(window.score_from, window.stop)]
    assert scored == list(range(tokens))
    assert all(window.stop - window.start <= 8 for window in windows)
    assert all(window.score_from - window.start == 2 for window in windows[1:])
    assert all(window.document == 3 for window in windows)


def test_windows_pass_together_as_long_as_they_are_few_and_short():
    windows = [Window(n, 0, length, 0) for n, length in enumerate((3, 40, 4, 12, 11, 3, 2))]
    batches = list(batches_of(windows, BatchSize(3, 24)))
    assert [[w.stop for w in batch] for batch in batches] == [[40], [12, 11], [4, 3, 3], [2]]
    assert sorted(w.document for batch in batches for w in batch) == list(range(7))


def test_a_document_without_tokens_has_no_window():
    assert list(windows_of(0, 0, 8)) == []


# Baselines


def test_the_byte_model_gives_probabilities_that_sum_to_one():
    model = count_bytes([b"abracadabra", b"abc"])
    for history in (b"", b"a", b"ab", b"zz", b"xyab"):
        before = model.nats(history)
        total = sum(math.exp(before - model.nats(history + bytes([byte]))) for byte in range(256))
        assert total == pytest.approx(1, abs=1e-9)


def test_the_byte_model_agrees_with_the_formula_done_by_hand():
    # After "ab" of one text "abc": n(ab) = 1, T(ab) = 1; likewise n(b) = 1, T(b) = 1; n = 3, T = 3.
    p0 = (1 + 3 / 256) / (3 + 3)
    p1 = (1 + p0) / 2
    p2 = (1 + p1) / 2
    model = count_bytes([b"abc"])
    assert model.nats(b"abc") - model.nats(b"ab") == pytest.approx(-math.log(p2))


def test_the_byte_model_learns():
    text = "".join(function(n) for n in range(200)).encode()
    other = function(500).encode()
    trained = count_bytes([text]).nats(other) / len(other) / math.log(2)
    untrained = count_bytes([b"?"]).nats(other) / len(other) / math.log(2)
    assert trained < 2.5 < 7 < untrained
    assert count_bytes([text]).nats(b"") == 0


def test_how_the_text_is_cut_into_documents_counts_only_at_their_beginnings():
    parts = [function(n).encode() for n in range(30)]
    assert count_bytes(parts).nats(parts[0]) == count_bytes(reversed(parts)).nats(parts[0])
    assert count_bytes(parts).nats(parts[0]) != count_bytes([b"".join(parts)]).nats(parts[0])


def test_the_unigram_counts_with_one_added():
    unigram = count_tokens([[0, 0, 1], [0]], vocab_size=4)
    assert np.exp(-unigram.token_nats).tolist() == pytest.approx([4 / 8, 2 / 8, 1 / 8, 1 / 8])
    assert unigram.nats([0, 3]) == pytest.approx(math.log(2) + math.log(8))


# Score files

ROW = DocumentScore("aa", "json", "python_stdlib", 10, 3, 1.5, 2.5, 2.25, 3.5, 4.5)


def test_scores_come_back_as_they_were(tmp_path):
    broken = dataclasses.replace(ROW, id="bb", candidate_nats=math.inf)
    write_scores(tmp_path, [broken, ROW])
    assert read_folders([tmp_path]).scores == [ROW, broken]
    assert "Infinity" not in (tmp_path / SCORES_FILE).read_text()


def test_a_document_scored_in_two_pieces_is_refused(tmp_path):
    for name in "ab":
        write_scores(tmp_path / name, [ROW])
    with pytest.raises(CorruptArtifactError, match="in two pieces"):
        read_folders([tmp_path / "a", tmp_path / "b"])


def test_a_line_that_is_no_score_is_refused(tmp_path):
    (tmp_path / SCORES_FILE).write_text('{"id": "aa"}\n')
    with pytest.raises(CorruptArtifactError, match="no score"):
        read_folders([tmp_path])


# Before any model is loaded


def test_a_piece_without_documents_says_so(tmp_path):
    inputs = ScoreInputs(
        tmp_path, None, [], [write(tmp_path / "h", [real("x = 1", cluster="short")])]
    )
    with pytest.raises(EmptySourceError, match="no held-out document"):
        score(inputs, ScoreParams(0, 1, LIMITS))
    scores = score(inputs, ScoreParams(0, 1, LIMITS, may_be_empty=True))
    assert (scores.documents, scores.cloze, scores.sanity) == ([], [], None)


def test_baselines_are_not_counted_on_generated_text(tmp_path):
    kept = write(tmp_path / "k", [synthetic(function(1))])
    inputs = ScoreInputs(tmp_path, None, [kept], [write(tmp_path / "h", held_out())])
    with pytest.raises(EmptySourceError, match="no real training text"):
        score(inputs, ScoreParams(0, 1, LIMITS))


@pytest.mark.parametrize("split", ["dev", "vault"])
def test_only_what_the_gate_may_see_is_scored(tmp_path, split):
    hidden = [dataclasses.replace(sample, split=split) for sample in held_out()]
    inputs = ScoreInputs(tmp_path, None, [], [write(tmp_path / "h", hidden)])
    with pytest.raises(EmptySourceError, match="no held-out document"):
        score(inputs, ScoreParams(0, 1, LIMITS))
    shown = dataclasses.replace(inputs, parts=frozenset({"gate", split}))
    with pytest.raises(EmptySourceError, match="no real training text"):
        score(shown, ScoreParams(0, 1, LIMITS))


def test_a_text_that_is_held_out_for_two_purposes_is_scored_for_both(tmp_path):
    write_scores(tmp_path / "a", [ROW])
    write_scores(tmp_path / "b", [dataclasses.replace(ROW, part="vault")])
    found = read_folders([tmp_path / "a", tmp_path / "b"]).scores
    assert [row.part for row in found] == ["gate", "vault"]


def test_held_out_text_of_a_purged_source_is_scored_no_more(tmp_path):
    docs = [dataclasses.replace(sample, source="docs") for sample in held_out()]
    folder = write(tmp_path / "h", docs)
    inputs = ScoreInputs(tmp_path, None, [], [folder], Purge(["docs"]))
    with pytest.raises(EmptySourceError, match="no held-out document"):
        score(inputs, ScoreParams(0, 1, LIMITS))


def test_the_baselines_count_nothing_that_was_purged_since(tmp_path):
    docs = [dataclasses.replace(real(function(n)), source="docs") for n in range(5)]
    kept = write(tmp_path / "k", docs)
    folder = write(tmp_path / "h", held_out())
    inputs = ScoreInputs(tmp_path, None, [kept], [folder], Purge(["docs"]))
    with pytest.raises(EmptySourceError, match="no real training text"):
        score(inputs, ScoreParams(0, 1, LIMITS))
