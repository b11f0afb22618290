"""The proof that every position of the data's order was trained on once."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.base.permutation import sequences_at
from jupiterd.cycle.data.audit import Committed, RoundAudit, RoundTraining, audit

SEQ_LEN = 16
Line = list[Committed]


def committed(
    name: str, cursor: int, attempt: int = 1, began: int | None = 0, round_number: int = 1
) -> Committed:
    return Committed(name, round_number, cursor, cursor * SEQ_LEN, attempt, began)


def judged(line: Line, sequences: int = 100) -> RoundAudit:
    (only,) = audit(line, {1: RoundTraining(sequences, SEQ_LEN)})
    return only


@st.composite
def sound_lines(draw: st.DrawFn) -> tuple[Line, Mapping[int, RoundTraining]]:
    """Lines as gangs make them: each begins where the line ended, and commits now and then."""
    line: Line = []
    trained: dict[int, RoundTraining] = {}
    attempt = tokens = 0
    for number in range(1, draw(st.integers(1, 3)) + 1):
        trained[number] = RoundTraining(draw(st.integers(1, 50)), draw(st.integers(1, 64)))
        cursor = 0
        for _ in range(draw(st.integers(1, 4))):
            attempt += 1
            began = cursor
            for _ in range(draw(st.integers(1, 4))):
                added = draw(st.integers(1, 40))
                cursor, tokens = cursor + added, tokens + added * trained[number].seq_len
                line.append(Committed(f"k{len(line)}", number, cursor, tokens, attempt, began))
    return line, trained


def begins_an_epoch(line: Line, index: int) -> bool:
    return index == 0 or line[index - 1].attempt != line[index].attempt


@given(sound_lines())
def test_what_gangs_make_in_turn_covers_everything_once(made: tuple[Line, Mapping]) -> None:
    line, trained = made
    for each in audit(line, trained):
        assert each.problems == ()
        assert [part.first for part in each.ranges] == [
            0, *(part.end for part in each.ranges[:-1])
        ]  # fmt: skip
        assert each.ranges[-1].end == each.cursor
        assert each.tokens == each.cursor * trained[each.round].seq_len


@given(sound_lines(), st.integers(-30, 30).filter(bool), st.randoms(use_true_random=False))
def test_a_gang_that_began_elsewhere_is_found_out(made, shift: int, chance) -> None:
    line, trained = made
    starts = [index for index in range(len(line)) if begins_an_epoch(line, index)]
    index = chance.choice(starts)
    attempt = line[index].attempt
    moved = [
        replace(each, began=each.began + shift) if each.attempt == attempt else each
        for each in line
    ]
    (wrong,) = [each for each in audit(moved, trained) if each.problems]
    assert wrong.round == line[index].round


@given(sound_lines(), st.randoms(use_true_random=False))
def test_a_checkpoint_that_is_missing_between_two_gangs_leaves_a_gap(made, chance) -> None:
    line, trained = made
    inner = [
        index
        for index in range(1, len(line) - 1)
        if begins_an_epoch(line, index + 1) and line[index + 1].round == line[index].round
    ]
    if inner:
        index = chance.choice(inner)
        rest = [each for number, each in enumerate(line) if number != index]
        assert any("no checkpoint contains" in text for each in audit(rest, trained)
                   for text in each.problems)  # fmt: skip


@given(sound_lines(), st.integers(-99, 99).filter(bool), st.randoms(use_true_random=False))
def test_tokens_that_were_miscounted_are_found_out(made, wrong: int, chance) -> None:
    line, trained = made
    index = chance.randrange(len(line))
    line[index] = replace(line[index], tokens=line[index].tokens + wrong)
    assert any(each.problems for each in audit(line, trained))


def test_a_gap_is_told_with_its_ends() -> None:
    found = judged([committed("k1", 40), committed("k2", 80, attempt=2, began=50)])
    assert found.problems[0] == "no checkpoint contains [40, 50), before k2"


def test_an_overlap_is_told_with_its_ends() -> None:
    found = judged([committed("k1", 40), committed("k2", 80, attempt=2, began=30)])
    assert found.problems[0] == "[30, 40) was trained on twice, the second time in k2"


def test_a_gang_nobody_knows_the_beginning_of_proves_nothing() -> None:
    found = judged([committed("k1", 40), committed("k2", 80, attempt=2, began=None)])
    assert found.problems[0] == "nobody knows where attempt 2 began, which made k2"


def test_a_round_without_a_manifest_proves_nothing() -> None:
    (found,) = audit([committed("k1", 40)], {})
    assert found.problems == ("round 1 has no manifest",)


def test_a_line_that_goes_backwards_is_found_out() -> None:
    found = judged([committed("k1", 40), committed("k2", 30)])
    assert found.problems[0] == "k2 ends at 30, before it begins at 40"


@pytest.mark.parametrize(("cursor", "passes"), [(99, (0, 99)), (100, (1, 0)), (250, (2, 50))])
def test_positions_go_on_into_further_passes(cursor: int, passes: tuple[int, int]) -> None:
    assert judged([committed("k1", cursor)]).passes == passes


@given(st.integers(1, 60), st.integers(1, 4), st.text(max_size=8))
def test_covering_a_pass_means_each_of_its_sequences_once(n: int, passes: int, seed: str) -> None:
    order = list(sequences_at(0, passes * n, n, seed))
    for number in range(passes):
        assert sorted(order[number * n : (number + 1) * n]) == list(range(n))


def test_each_pass_has_an_order_of_its_own() -> None:
    order = list(sequences_at(0, 200, 100, "7/round 1"))
    assert order[:100] != order[100:]
