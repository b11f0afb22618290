from jupiter_tui.drawings.primitives.columns import Column, listed, table, visible
from jupiter_tui.drawings.primitives.lines import Cell, fitted, in_ascii, width_of

COLUMNS = (
    Column("a", "A", 4, 0, grows=True),
    Column("b", "B", 6, 2),
    Column("c", "C", 5, 1, is_right=True),
)
ROW = {"a": Cell("one"), "b": Cell("a long word"), "c": Cell("7")}


def _texts(width: int) -> list[str]:
    return ["".join(cell.text for cell in line) for line in table(COLUMNS, [ROW], width)]


def test_the_least_important_column_gives_way_first():
    assert [column.key for column in visible(COLUMNS, 17)] == ["a", "b", "c"]
    assert [column.key for column in visible(COLUMNS, 16)] == ["a", "c"]
    assert [column.key for column in visible(COLUMNS, 9)] == ["a"]
    assert [column.key for column in visible(COLUMNS, 1)] == ["a"]


def test_what_says_nothing_gives_way_before_what_matters_less():
    assert [column.key for column in visible(COLUMNS, 16, silent=["c"])] == ["a", "b"]
    listing = listed(COLUMNS, {"key": ROW | {"c": Cell("N/A")}}, 16)
    assert "".join(cell.text for cell in listing.rows[0].line) == "one       a lon…"


def test_columns_move_together_before_one_gives_way():
    assert _texts(18) == ["A     B          C", "one   a lon…     7"]


def test_cells_are_cut_aligned_and_filled_up():
    assert _texts(19) == ["A     B           C", "one   a lon…      7"]


def test_room_that_is_left_goes_to_the_column_that_grows():
    assert _texts(24)[1] == "one        a lon…      7"
    assert {width_of(line) for line in table(COLUMNS, [ROW], 24)} == {24}


def test_wide_characters_take_two_columns_of_the_terminal():
    assert fitted("木星木星", 6) == "木星 …"
    assert fitted("木", 4) == "木  "
    assert fitted("木", 4, is_right=True) == "  木"


def test_nothing_fits_into_no_width():
    assert fitted("abc", 0) == ""
    assert fitted("abc", 1) == "…"


def test_signs_have_a_likeness_in_ascii():
    assert in_ascii("● live ✓ ▶ … █░") == "* live + > ~ #-"
    assert in_ascii("木 é") == "? ?"
