import pytest

from jupiterd.cycle.questions.grades import Grade, grade_lines, read_grades
from jupiterd.errors import CorruptArtifactError


def test_grades_are_read_as_they_were_written():
    grades = [Grade(True, "Ada\u2028\ud800"), Grade(False, picked=3), Grade(False)]
    assert read_grades(grade_lines(grades)) == grades
    assert read_grades("") == []


@pytest.mark.parametrize(
    "line",
    [
        "x", "[]", "3", "{}", '{"is_right": 1, "written": "", "picked": null}',
        '{"is_right": true, "written": 3, "picked": null}',
        '{"is_right": true, "written": "", "picked": "a"}',
    ],
)  # fmt: skip
def test_a_line_that_is_no_grade_is_told(line: str):
    with pytest.raises(CorruptArtifactError):
        read_grades(line)
