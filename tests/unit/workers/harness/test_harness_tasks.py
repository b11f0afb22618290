"""Tasks of lm-evaluation-harness, found and answered by real worker processes."""

from pathlib import Path
from shutil import copytree

import pytest

pytest.importorskip("torch")
pytest.importorskip("lm_eval", reason="tasks of lm-evaluation-harness need the package lm_eval")

from jupiterd.adapter_folder import join
from jupiterd.cycle.questions.task_scores import (
    SCORES_FILE,
    TASKS_FILE,
    FoundTask,
    TaskScore,
    read_task_scores,
    read_tasks,
)
from jupiterd.protocol.frames import TaskFailed, TaskFinished
from tests.support.workers.data_material import run_worker
from tests.support.workers.harness_tasks import write_tasks
from tests.support.workers.tiny_models import write_model
from tests.unit.workers.train.adapters.test_merged_adapters import adapter_to, merged_by_hand

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

NAMES = ["own_capitals", "own_prose", "own_sums"]


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tasks(tmp_path / "own")


def found(folder: Path | None, at: Path, *names: str) -> list[FoundTask] | TaskFailed:
    inputs = {} if folder is None else {"tasks": folder}
    params = {"names": list(names), "started_in": str(at)}
    last = run_worker("find_tasks", params, inputs, at / "out")
    if isinstance(last, TaskFinished):
        return read_tasks((at / "out" / "found" / TASKS_FILE).read_text())
    assert isinstance(last, TaskFailed)
    return last


def scored(folder: Path, model: Path, at: Path) -> dict[str, TaskScore]:
    params = {"names": NAMES, "started_in": str(at), "device": "cpu"}
    last = run_worker("grade_tasks", params, {"tasks": folder, "model": model}, at / "scored")
    assert isinstance(last, TaskFinished), last
    rows = read_task_scores((at / "scored" / "scores" / SCORES_FILE).read_text())
    return {row.metric: row for row in rows}


def test_a_folder_is_all_of_its_tasks_and_its_data_are_found_in_it(folder: Path, tmp_path: Path):
    tasks = found(folder, tmp_path)
    assert isinstance(tasks, list)
    assert [(each.name, each.documents) for each in tasks] == [
        ("own_capitals", 2), ("own_prose", 5), ("own_sums", 8),
    ]  # fmt: skip
    (folder / "own_sums.jsonl").write_text('{"q": "1 + 1 =", "options": ["2", "3"], "gold": 0}\n')
    changed = found(folder, tmp_path, "own_sums", "own_prose")
    assert isinstance(changed, list)
    assert [each.documents for each in changed] == [1, 5]
    assert changed[0].content != tasks[2].content
    assert changed[1].content == tasks[1].content


def test_each_kind_of_task_is_scored_and_its_figures_are_those_of_its_documents(
    folder: Path, tmp_path: Path
):
    rows = scored(folder, write_model(tmp_path / "tiny", "llama"), tmp_path)
    assert {row.asked_as for row in rows.values()} == set(NAMES)
    bits = rows["bits_per_byte"]
    assert bits.value == pytest.approx(sum(bits.values) / sum(bits.weights))
    assert (len(bits.values), bits.is_higher_better, bits.documents) == (5, False, 5)
    assert rows["byte_perplexity"].value == pytest.approx(2**bits.value, rel=1e-6)
    assert not rows["byte_perplexity"].values
    assert sum(rows["acc"].values) / 8 == rows["acc"].value
    assert len(rows["exact_match"].values) == 2


def test_an_adapter_is_scored_as_the_sum_of_both(folder: Path, tmp_path: Path):
    base = write_model(tmp_path / "base", "llama")
    joined = join(adapter_to(base, tmp_path / "adapter"), base, tmp_path / "joined")
    whole = copytree(base, tmp_path / "whole")
    merged_by_hand(base, joined, 3.0).save_pretrained(whole)
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    found = scored(folder, joined, tmp_path / "with")["bits_per_byte"].values
    assert found == pytest.approx(scored(folder, whole, tmp_path)["bits_per_byte"].values, rel=1e-5)
    alone = scored(folder, base, tmp_path / "without")["bits_per_byte"].values
    assert found != pytest.approx(alone, rel=1e-2)


def test_what_can_not_be_had_is_one_line(folder: Path, tmp_path: Path):
    unknown = found(folder, tmp_path, "own_sum")
    assert isinstance(unknown, TaskFailed)
    assert unknown.code == "not-found"
    assert unknown.message == "lm-evaluation-harness has no task own_sum"
    assert "own_sums" in unknown.hint
    (folder / "own_prose.jsonl").unlink()
    lost = found(folder, tmp_path)
    assert isinstance(lost, TaskFailed)
    assert lost.code == "source-unreachable"
    assert "can't be read" in lost.message
    assert "\n" not in lost.message
    (tmp_path / "nothing").mkdir()
    empty = found(tmp_path / "nothing", tmp_path)
    assert isinstance(empty, TaskFailed)
    assert empty.message == "nothing has no tasks of lm-evaluation-harness"


def test_a_task_of_the_harness_whose_data_are_not_here_is_named(tmp_path: Path):
    lost = found(None, tmp_path, "hellaswag")
    assert isinstance(lost, TaskFailed)
    assert lost.message.startswith("hellaswag can't be read: ")
    assert "hub" in lost.hint
