from jupiter_tui.drawings.primitives.lines import Tone, in_ascii
from jupiter_tui.drawings.primitives.plot import (
    LABEL_WIDTH,
    MARK,
    Layer,
    dots_of,
    plotted,
    scales_of,
)

FALLING = [(float(step), 10.0 - step / 10) for step in range(0, 101, 5)]


def text(lines) -> list[str]:
    return ["".join(cell.text for cell in line) for line in lines]


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


def test_a_curve_takes_only_its_part_of_a_chart_that_is_wider():
    scales = scales_of([Layer(FALLING), Layer([(200.0, 1.0)])])
    assert {column for column, _ in dots_of(FALLING, 21, 11, scales)} == set(range(11))


def test_a_chart_in_ascii_with_its_labels():
    chart = plotted([Layer([(0, 3.0), (100, 1.0)])], LABEL_WIDTH + 16, 5, is_ascii=True)
    assert [in_ascii(line) for line in text(chart)] == [
        "   3.000|*****          ",
        "        |    ********   ",
        "   1.000|           ****",
        "        +---------------",
        "         0           100",
    ]


def test_a_chart_in_braille_fills_its_space_exactly():
    chart = text(plotted([Layer(FALLING)], 40, 12, is_ascii=False))
    assert len(chart) == 12
    assert {len(line) for line in chart} == {40}
    assert any(0x2800 < ord(char) <= 0x28FF for char in "".join(chart))


def test_a_chart_with_hardly_any_room_is_still_drawn():
    assert plotted([Layer(FALLING)], 3, 1, is_ascii=False)


def test_each_curve_keeps_its_tone_and_a_mark_lies_above():
    layers = [
        Layer(FALLING, Tone.FAINT),
        Layer([(0.0, 2.0), (100.0, 2.0)], Tone.GOOD),
        Layer([(100.0, 8.0)], Tone.WARN, is_marked=True),
    ]
    cells = [cell for line in plotted(layers, 40, 12, is_ascii=False) for cell in line]
    assert {cell.tone for cell in cells if cell.text == MARK} == {Tone.WARN}
    assert any(cell.tone is Tone.GOOD for cell in cells)


def test_on_a_logarithmic_scale_each_tenfold_is_as_high():
    points = [(0.0, 100.0), (1.0, 10.0), (2.0, 1.0)]
    scales = scales_of([Layer(points)], is_log=True)
    assert [round(scales.down(y), 6) for _, y in points] == [0.0, 0.5, 1.0]
    assert round(scales.at(0.5), 6) == 10.0


def test_what_is_not_above_0_has_no_logarithm_and_stays_on_the_other_scale():
    assert not scales_of([Layer([(0.0, 1.0), (1.0, 0.0)])], is_log=True).is_log


def test_places_on_the_axis_are_named_as_they_are_meant():
    chart = plotted([Layer(FALLING)], 60, 8, is_ascii=False, named=lambda x: f"{x:.0f} tokens")
    last = text(chart)[-1]
    assert last.split()[0] == "0"
    assert last.endswith("100 tokens")
