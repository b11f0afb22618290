import pytest

from jupiterd.cycle.generation.completions import Completion, completion_lines, read_completions
from jupiterd.errors import CorruptArtifactError


def test_what_was_written_is_read_again_whatever_is_in_it():
    written = [
        Completion("def f(", "x):\n    return '\u2028'\n", is_looping=True),
        Completion("", "\ud800"),  # half a character
    ]
    assert read_completions(completion_lines(written)) == written
    assert read_completions("") == []


@pytest.mark.parametrize(
    "line", ["x", "[]", '{"prompt": "a"}', '{"prompt": "", "text": "", "z": 1}']
)
def test_a_line_that_is_no_completion_is_told(line):
    with pytest.raises(CorruptArtifactError):
        read_completions(line)
