"""Bars and lines of one rank and of several on a terminal."""

import re
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.ctl.launch.terminal.rank_rows import (
    MAX_ROW_CHARACTERS,
    MAX_ROWS,
    RankRows,
    visible,
)
from jupiterd.ctl.launch.terminal.terminal_output import TerminalOutput

SIZE = (24, 60)
UP = b"\x1b[A"


class Screen:
    """What a person sees of what is written: as much of a terminal as that takes."""

    def __init__(self) -> None:
        self.lines = [""]
        self._at = 0

    def write(self, data: bytes, _is_error: bool) -> None:
        for piece in re.split(r"(\r|\n|\x1b\[[0-9;?]*[A-Za-z])", data.decode()):
            if piece == "\n":
                self._at += 1
                self.lines += [""] * (self._at + 1 - len(self.lines))
            elif piece.endswith("A") and piece.startswith("\x1b"):
                self._at -= int(piece[2:-1])
                assert self._at >= 0
            elif piece == "\x1b[J":
                self.lines[self._at :] = [""]
            elif piece and piece != "\r" and not piece.startswith("\x1b"):
                self.lines[self._at] += piece
                assert len(self.lines[self._at]) <= SIZE[1]

    @property
    def seen(self) -> list[str]:
        return [line.rstrip() for line in self.lines if line.strip()]


class Clock:
    """A clock that goes on by a tenth of a second at each look."""

    def __init__(self, step_s: float = 0.1) -> None:
        self._now_s, self._step_s = 0.0, step_s

    def __call__(self) -> float:
        self._now_s += self._step_s
        return self._now_s


def shown(*said: tuple[int, bytes], step_s: float = 0.1, is_over: bool = False) -> list[str]:
    """Return what is seen once these ranks have printed these pieces."""
    screen = Screen()
    output = TerminalOutput(screen.write, lambda: SIZE, shown=None, now_s=Clock(step_s))
    for rank, piece in said:
        output.take(rank, piece, is_error=False)
    for rank in {rank for rank, _ in said} if is_over else ():
        output.finish(rank)
    return screen.seen


def of(rank: int, *pieces: bytes) -> Sequence[tuple[int, bytes]]:
    return [(rank, piece) for piece in pieces]


def test_a_bar_is_shown_at_once_and_replaces_itself():
    assert shown(*of(0, b"\r 10%", b"\r 20%", b"\r 30%")) == ["[rank 0]  30%"]


def test_bars_of_two_ranks_stand_below_each_other_and_lines_above_them():
    said = [
        (0, b"\rone 10%"), (1, b"\rtwo 10%"), (0, b"\rone 50%"),
        (1, b"\r       \rloss 3\n"), (1, b"\rtwo 60%"), (0, b"\rone 90%"),
    ]  # fmt: skip
    assert shown(*said) == ["[rank 1] loss 3", "[rank 0] one 90%", "[rank 1] two 60%"]


def test_a_bar_within_a_bar_moves_in_its_own_row():
    inner = [b"\n", b"\rinner 1/2", UP, b"\router 1/2", b"\n", b"\rinner 2/2", UP]
    said = of(0, b"\router 0/2", *inner)
    assert shown(*said, step_s=0.0) == ["[rank 0] outer 1/2", "[rank 0] inner 2/2"]


def test_rows_that_are_drawn_anew_together_are_seen_once():
    refresh = b"\r\x1b[2K\x1b[1A\x1b[2K"
    said = of(0, b"load 1\ntrain 1", refresh + b"load 2\ntrain 2", refresh + b"load 3\ntrain 3")
    assert shown(*said) == ["[rank 0] load 3", "[rank 0] train 3"]


def test_a_note_above_bars_stays_above_them():
    said = of(0, b"load 1\ntrain 1", b"\r\x1b[2K\x1b[1A\x1b[2Knote\nload 2\ntrain 2")
    told = of(0, *(piece for _, piece in said), b"\r\x1b[2K\x1b[1A\x1b[2Kload 3\ntrain 3")
    assert shown(*told) == ["[rank 0] note", "[rank 0] load 3", "[rank 0] train 3"]


def test_lines_of_two_ranks_stand_in_the_order_in_which_they_came():
    said = [(0, b"a1\n"), (1, b"b1\n"), (0, b"a2\n"), (1, b"b2\n")]
    assert shown(*said) == ["[rank 0] a1", "[rank 1] b1", "[rank 0] a2", "[rank 1] b2"]


def test_what_many_ranks_draw_never_reaches_above_the_screen():
    said = [(rank, b"\r%d\n\r%d" % (step, step)) for step in range(3) for rank in range(40)]
    assert f"[rank 39] {2}" in shown(*said)


def test_an_unfinished_line_is_kept_and_what_a_cleared_bar_leaves_is_not():
    assert shown(*of(0, b"no end"), is_over=True) == ["[rank 0] no end"]
    screen = Screen()
    output = TerminalOutput(screen.write, lambda: SIZE, now_s=Clock())
    output.take(0, b"line\n\r 10%\r    ", is_error=False)
    output.finish(0)
    assert screen.lines == ["[rank 0] line", ""]


def test_other_words_go_above_what_moves():
    screen = Screen()
    output = TerminalOutput(screen.write, lambda: SIZE, now_s=Clock())
    output.take(0, b"\r 10%", is_error=False)
    output.settle()
    screen.write(b"jupiterctl: m2 isn't heard of\n", True)
    output.resume()
    assert screen.seen == ["jupiterctl: m2 isn't heard of", "[rank 0]  10%"]
    output.take(0, b"\r 20%", is_error=False)
    assert screen.seen == ["jupiterctl: m2 isn't heard of", "[rank 0]  20%"]


def test_a_row_wider_than_the_terminal_is_cut_and_its_colour_ends():
    assert visible("\x1b[31m" + "wide" * 9, 6) == "\x1b[31mwidewi\x1b[0m"
    assert visible("\u5e83\u3044 ok", 4) == "\u5e83\u3044"
    assert shown(*of(0, b"\r" + b"x" * 200)) == ["[rank 0] " + "x" * (SIZE[1] - 9)]


def test_sequences_that_draw_nothing_are_left_out():
    assert shown(*of(0, b"\x1b[?25l\x1b]0;title\x07\x1b[?2004hready\x1b[?25h\x07")) == [
        "[rank 0] ready"
    ]
    said = of(0, b"\x1b7\x1b(Bready\x1b[m\x1b", b"(", b"B\x1b8\x1b=")
    assert shown(*said) == ["[rank 0] ready"]


def test_a_spinner_turns_in_its_place():
    turns = [b"wait |", b"\b/", b"\b\b\x1b[31m -", b"\b\x1b[0m\b."]
    assert shown(*of(0, *turns)) == ["[rank 0] wait."]
    assert shown(*of(0, b"50%\r\b", b"\b\b\b\b60%")) == ["[rank 0] 60%"]


def test_a_line_longer_than_a_row_loses_nothing():
    rows, said = RankRows(), "".join(f"{number} " for number in range(150_000))
    ended = [*rows.take(f"{said}\nend\n".encode(), is_soon=False), *rows.end()]
    assert max(map(len, ended)) == MAX_ROW_CHARACTERS
    assert "".join(ended[:-1]) == said
    assert ended[-1] == "end"


@given(
    st.lists(
        st.sampled_from(
            [
                b"\r",
                b"\n",
                b"ab",
                b"\b",
                b"\x1b(B",
                "\u2588\u00e9".encode(),
                b"\x1b[31m",
                UP,
                b"\x1b[2K",
            ]
        ),
        max_size=30,
    ),
    st.lists(st.integers(0, 200)),
)
def test_what_is_seen_is_the_same_wherever_the_pieces_are_cut(parts: list[bytes], cuts: list[int]):
    said = b"".join(parts)
    ends = sorted({0, len(said), *(cut for cut in cuts if cut < len(said))})
    pieces = [said[begin:end] for begin, end in pairwise(ends)]
    whole, cut = RankRows(), RankRows()
    first = [*whole.take(said, is_soon=True), *whole.end()]
    given_away = [row for piece in pieces for row in cut.take(piece, is_soon=True)]
    assert [*given_away, *cut.end()] == first


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_break_it(pieces: list[bytes]):
    rows = RankRows()
    for piece in pieces:
        rows.take(piece, is_soon=False)
        assert 1 <= len(rows.rows) <= MAX_ROWS
        for row in rows.rows:
            visible(row, 20)
