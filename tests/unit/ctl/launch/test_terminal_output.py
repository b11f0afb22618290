"""Bars of one rank on a terminal."""

from jupiterd.ctl.launch.terminal_output import TerminalOutput


def shown(*pieces: bytes) -> bytes:
    written: list[bytes] = []
    output = TerminalOutput(lambda data, _: written.append(data), shown=(0,))
    for piece in pieces:
        output.take(0, piece, is_error=True)
    output.finish(0)
    return b"".join(written)


def test_a_bar_is_shown_at_once_and_replaces_itself():
    assert shown(b"\r 10%", b"\r 20%", b"\r 30%\n") == (
        b"\r[rank 0]  10%\r[rank 0]  20%\r[rank 0]  30%\n"
    )


def test_pieces_make_the_same_lines_wherever_they_are_cut():
    said = b"one\r\ntwo\n\nthree\rfour\n"
    cut = [said[n : n + 1] for n in range(len(said))]
    assert shown(said) == shown(*cut)
    assert shown(said) == b"[rank 0] one\r\n[rank 0] two\n\n[rank 0] three\r[rank 0] four\n"


def test_an_unfinished_line_is_ended():
    assert shown(b"no end") == b"[rank 0] no end\n"
