"""What a terminal shows, as the tests reckon it."""

from tests.support.tui.screen import Screen


def _fed(*pieces: bytes) -> Screen:
    screen = Screen(10, 2)
    for piece in pieces:
        screen.feed(piece)
    return screen


def test_what_is_written_stands_where_the_cursor_was():
    screen = _fed(b"\x1b[2;3Hab\x1b[1;1Hc\r\nd")
    assert screen.text == "c         \nd ab      "


def test_bytes_may_be_torn_anywhere():
    data = "\x1b[1;2H\x1b[1;31m→\x1b[0mx\x1b]0;title\x07y".encode()
    torn = _fed(*(data[at : at + 1] for at in range(len(data))))
    assert torn.text == _fed(data).text == " →xy      \n          "
    assert torn.style_of("→") == "1;31"
    assert torn.style_of("x") == ""


def test_a_wide_character_takes_two_places():
    assert _fed("日b".encode()).text.splitlines()[0] == "日b       "
