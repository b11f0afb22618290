from jupiter_tui.drawings.plot import LABEL_WIDTH, dots_of, plotted

FALLING = [(float(step), 10.0 - step / 10) for step in range(0, 101, 5)]


def test_a_falling_line_goes_from_the_upper_left_to_the_lower_right():
    dots = dots_of(FALLING, 11, 11)
    assert {(0, 0), (5, 5), (10, 10)} <= dots
    assert (0, 10) not in dots


def test_every_column_has_a_dot_and_a_steep_line_has_no_gaps():
    dots = dots_of([(0, 0.0), (1, 100.0), (2, 0.0)], 9, 40)
    assert {column for column, _ in dots} == set(range(9))
    assert {row for _, row in dots} == set(range(40))


def test_a_level_line_runs_through_the_middle():
    assert {row for _, row in dots_of([(0, 2.0), (9, 2.0)], 10, 9)} == {4}


def test_one_point_is_one_dot():
    assert len(dots_of([(7, 2.0)], 10, 9)) == 1


def test_points_far_apart_are_joined_by_a_straight_line():
    assert dots_of([(0, 0.0), (100, 1.0)], 3, 3) == {(0, 2), (1, 2), (1, 1), (2, 1), (2, 0)}


def test_a_chart_in_ascii_with_its_labels():
    assert plotted([(0, 3.0), (100, 1.0)], LABEL_WIDTH + 16, 5, is_ascii=True) == [
        "   3.000┤*****          ",
        "        ┤    ********   ",
        "   1.000┤           ****",
        "        └───────────────",
        "         step 0      100",
    ]


def test_a_chart_in_braille_fills_its_space_exactly():
    chart = plotted(FALLING, 40, 12, is_ascii=False)
    assert len(chart) == 12
    assert {len(text) for text in chart} == {40}
    assert any(0x2800 < ord(char) <= 0x28FF for char in "".join(chart))


def test_a_chart_with_hardly_any_room_is_still_drawn():
    assert plotted(FALLING, 3, 1, is_ascii=False)
