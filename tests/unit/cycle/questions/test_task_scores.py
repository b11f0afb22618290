"""What a worker writes of a model's scores in tasks."""

import pytest

from jupiterd.cycle.questions.task_scores import (
    FoundTask,
    TaskScore,
    read_task_scores,
    read_tasks,
    score_lines,
    tasks_text,
)
from jupiterd.errors import CorruptArtifactError

ACC = TaskScore("sums", "sums", "acc", "none", 0.5, 0.2, True, 4, (1.0, 0.0, 1.0, 0.0), (1.0,) * 4)
F1 = TaskScore("sums", "sums", "f1", "none", 0.6, 0.1, True, 4)


def test_scores_and_tasks_come_back_as_they_were_written():
    assert read_task_scores(score_lines([ACC, F1])) == [ACC, F1]
    tasks = [FoundTask("sums", "ab", 4)]
    assert read_tasks(tasks_text(tasks)) == tasks


@pytest.mark.parametrize("text", ["{", "[]\n", '{"task": "sums"}\n'])
def test_what_is_no_file_of_scores_is_damaged(text: str):
    with pytest.raises(CorruptArtifactError):
        read_task_scores(text)


def test_documents_are_paired_where_both_models_have_them():
    other = TaskScore("sums", "sums", "acc", "none", 0.25, 0.2, True, 4, (1.0, 0, 0, 0), (1.0,) * 4)
    found, is_paired = ACC.less(other)
    assert (found.value, is_paired) == (0.25, True)
    found, is_paired = F1.less(F1)
    assert (found.value, is_paired) == (0.0, False)
    assert found.interval is not None
    assert found.interval.high == pytest.approx(0.277, abs=1e-3)
