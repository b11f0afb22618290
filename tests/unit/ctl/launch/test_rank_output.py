from jupiterd.ctl.launch.rank_output import MAX_LINE_BYTES, TAIL_LINES, RankOutput


def output(shown: tuple[int, ...] | None = (0,)) -> tuple[RankOutput, list[tuple[bytes, bool]]]:
    written: list[tuple[bytes, bool]] = []
    return RankOutput(lambda line, is_error: written.append((line, is_error)), shown), written


def test_whole_lines_are_written_with_their_rank_before_them():
    out, written = output(shown=None)
    out.take(0, b"hel", is_error=False)
    out.take(1, b"one\ntwo\n", is_error=True)
    out.take(0, b"lo\n", is_error=False)
    assert written == [
        (b"[rank 1] one\n", True),
        (b"[rank 1] two\n", True),
        (b"[rank 0] hello\n", False),
    ]


def test_rank_0_alone_is_shown_and_the_last_lines_of_the_others_are_kept():
    out, written = output()
    out.take(1, b"".join(b"line %d\n" % n for n in range(100)), is_error=True)
    out.take(0, b"mine\n", is_error=False)
    assert written == [(b"[rank 0] mine\n", False)]
    assert len(out.tail(1)) == TAIL_LINES
    assert out.tail(1)[-1] == "line 99"


def test_what_a_rank_left_unfinished_is_written_at_its_end():
    out, written = output()
    out.take(0, b"no end", is_error=False)
    out.finish(0)
    assert written == [(b"[rank 0] no end\n", False)]


def test_a_progress_bar_goes_on_replacing_itself():
    out, written = output()
    out.take(0, b"\r 10%\r 20%\r", is_error=True)
    out.take(0, b"\ndone\n", is_error=True)
    assert [line for line, _ in written] == [
        b"[rank 0] \r",
        b"[rank 0]  10%\r",
        b"[rank 0]  20%\r\n",
        b"[rank 0] done\n",
    ]


def test_a_line_without_end_is_cut():
    out, written = output()
    out.take(0, b"x" * (3 * MAX_LINE_BYTES + 5), is_error=False)
    assert [len(line) for line, _ in written] == [MAX_LINE_BYTES + len(b"[rank 0] \n")] * 3
