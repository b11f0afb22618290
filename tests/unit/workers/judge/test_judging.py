"""Two students write, a judge compares: the workers, a real server, real models."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.gate.record import read_pair_lines
from jupiterd.cycle.gate.tie_break import Judged, weigh
from jupiterd.cycle.judge.pair import Pair
from jupiterd.errors import CorruptArtifactError, GeneratorRefusedError, WorkStoppedError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.generate import engines
from jupiterd.workers.judge import ask_judge, write_pairs
from tests.support.workers.answering_server import Answering, answer, answering, trouble
from tests.support.workers.data_material import real, write
from tests.support.workers.judging import first_place, knowing
from tests.support.workers.tiny_models import write_model
from tests.support.workers.tiny_run import TaskAlone

pytestmark = pytest.mark.net

PLANTED = 30
WORDS = ["bread", "rises", "yeast", "rests", "oven", "crust", "salt", "warm", "night", "knead"]
PARAMS: dict[str, Any] = {
    "language": "en",
    "limits": {
        "min_document_bytes": 64,
        "max_document_bytes": 4096,
        "max_cluster_documents": 20,
    },
    "pairs": 10,
    "planted": PLANTED,
    "max_tokens": 96,
    "temperature": 0.8,
    "top_p": 0.95,
    "seed": 5,
    "engine": "transformers",
}


def held_out(count: int = 20, clusters: int = 10) -> list[Sample]:
    chance = random.Random(3)
    texts = [" ".join(chance.choices(WORDS, k=120)) for _ in range(count)]
    return [
        replace(real(text, cluster=f"c{n % clusters}"), split="dev") for n, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("students")
    hidden = [
        replace(each, split=part, text=f"of the {part}: {each.text}")
        for each in held_out(4)
        for part in ("gate", "vault")
    ]
    return {
        "model": str(write_model(folder / "ours", "qwen3")),
        "incumbent": str(write_model(folder / "theirs", "llama")),
        "holdout.0": str(write(folder / "holdout", [*held_out(), *hidden])),
    }


def pairs_of(folder: Path) -> list[Pair]:
    return read_pair_lines([(folder / "pairs" / "pairs.jsonl").read_text()])


@pytest.fixture(scope="module")
def written(inputs: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    task = TaskAlone("write_pairs", PARAMS, inputs, folder)
    done = write_pairs.run(task)
    assert done.counts["planted_pairs"] == PLANTED
    assert done.counts["answer_pairs"] == done.counts["pair_clusters"] >= 4
    return folder


def ask(folder: Path, written: Path, served: Answering) -> TaskFinished:
    server = Generator("oak", url=served.url, model="oak")
    params = {"judge": server.id, "server": server.to_plain()}
    task = TaskAlone("ask_judge", params, {"pairs": str(written / "pairs")}, folder)
    return ask_judge.run(task)


def test_students_go_on_from_development_text_alone_and_each_pair_is_as_long(
    written: Path,
) -> None:
    pairs = pairs_of(written)
    texts = " ".join(each.text for each in held_out())
    assert all(pair.beginning in texts for pair in pairs)
    assert not any("of the gate" in pair.beginning for pair in pairs)
    assert not any("of the vault" in pair.beginning for pair in pairs)
    assert all(len(pair.ours) == len(pair.theirs) for pair in pairs)
    assert all(pair.ours in texts for pair in pairs if pair.is_planted)
    assert all(pair.ours != pair.theirs for pair in pairs)
    assert all(pair.replies == () for pair in pairs)


def test_the_same_item_makes_the_same_pairs(
    inputs: dict[str, str], written: Path, tmp_path: Path
) -> None:
    write_pairs.run(TaskAlone("write_pairs", PARAMS, inputs, tmp_path))
    assert pairs_of(tmp_path) == pairs_of(written)


def test_the_same_student_twice_gives_nothing_to_compare(
    inputs: dict[str, str], tmp_path: Path
) -> None:
    same = inputs | {"incumbent": inputs["model"]}
    done = write_pairs.run(TaskAlone("write_pairs", PARAMS, same, tmp_path))
    assert done.counts["answer_pairs"] == 0


def test_students_that_hold_little_go_on_from_the_end_of_a_beginning(
    inputs: dict[str, str], tmp_path: Path
) -> None:
    small = {
        name: str(write_model(tmp_path / name, kind, max_position_embeddings=128))
        for name, kind in (("model", "qwen3"), ("incumbent", "llama"))
    }
    done = write_pairs.run(TaskAlone("write_pairs", PARAMS, inputs | small, tmp_path / "out"))
    assert done.counts["answer_pairs"] > 0


def test_without_development_text_there_are_no_pairs(
    inputs: dict[str, str], tmp_path: Path
) -> None:
    gates = [replace(each, split="gate") for each in held_out()]
    without = inputs | {"holdout.0": str(write(tmp_path / "holdout", gates))}
    done = write_pairs.run(TaskAlone("write_pairs", PARAMS, without, tmp_path / "out"))
    assert done.counts == {"planted_pairs": 0, "answer_pairs": 0, "pair_clusters": 0}


def test_a_judge_is_asked_blindly_in_both_orders(written: Path, tmp_path: Path) -> None:
    with answering(knowing(each.text for each in held_out())) as served:
        done = ask(tmp_path / "out", written, served)
    pairs = pairs_of(tmp_path / "out")
    assert done.counts["questions"] == len(served.asked) == 2 * len(pairs)
    assert {pair.id for pair in pairs} == {pair.id for pair in pairs_of(written)}
    found = weigh(Judged("oak", pairs), 0.05)
    assert found.trial is not None
    assert (found.trial.right, found.trial.trouble) == (PLANTED, "")
    assert found.preference is not None
    assert found.preference.wins + found.preference.losses == len(pairs) - PLANTED
    shown = [body["messages"][0]["content"] for body in served.asked]
    assert len(set(shown)) == 2 * len(pairs)
    assert {body["temperature"] for body in served.asked} == {0.0}
    # A judge isn't told which of the kinds a pair is of, nor who wrote.
    assert not any(word in each for each in shown for word in ("candidate", "student", "planted"))


def test_one_that_names_the_first_place_is_asked_about_nothing_else(
    written: Path, tmp_path: Path
) -> None:
    with answering(first_place) as served:
        ask(tmp_path / "out", written, served)
        assert len(served.asked) == 2 * PLANTED
    found = weigh(Judged("oak", pairs_of(tmp_path / "out")), 0.05)
    assert found.trial is not None
    assert (found.trial.right, found.trial.inconsistent, found.trial.named_first) == (
        0,
        PLANTED,
        2 * PLANTED,
    )
    assert found.preference is None


def test_one_that_answers_rubbish_is_not_heard(written: Path, tmp_path: Path) -> None:
    with answering(lambda *_: answer("\x00 I am a teapot " * 500)) as served:
        ask(tmp_path / "out", written, served)
    pairs = pairs_of(tmp_path / "out")
    assert all(len(reply) <= 500 for pair in pairs for reply in pair.replies)
    found = weigh(Judged("oak", pairs), 0.05)
    assert found.trial is not None
    assert found.trial.unreadable == 2 * PLANTED
    assert found.trial.trouble


def test_what_was_answered_before_is_not_asked_again(written: Path, tmp_path: Path) -> None:
    judge = knowing(each.text for each in held_out())
    with answering(lambda body, n: judge(body, n) if n < 40 else trouble(401)) as served:
        with pytest.raises(GeneratorRefusedError):
            ask(tmp_path / "out", written, served)
        before, served.reply = len(served.asked), judge
        ask(tmp_path / "out", written, served)
        assert len(served.asked) - before <= 2 * len(pairs_of(written)) - 32
    assert all(len(pair.replies) == 2 for pair in pairs_of(tmp_path / "out"))


def test_asking_stops_when_the_daemon_asks_for_it(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(first_place) as served:
        server = Generator("oak", url=served.url, model="oak")
        params = {"judge": server.id, "server": server.to_plain()}
        task = TaskAlone("ask_judge", params, {"pairs": str(written / "pairs")}, tmp_path / "out")
        task.stop()
        with pytest.raises(WorkStoppedError):
            ask_judge.run(task)


@pytest.mark.full
@pytest.mark.parametrize("is_chat", [False, True])
def test_a_model_folder_can_judge_and_one_of_random_weights_is_not_heard(
    written: Path, tmp_path: Path, *, is_chat: bool
) -> None:
    judge = write_model(tmp_path / "judge", "qwen2", is_chat=is_chat, max_position_embeddings=4096)
    params = {"judge": "j" * 64, "engine": "transformers"}
    inputs = {"pairs": str(written / "pairs"), "model": str(judge)}
    done = ask_judge.run(TaskAlone("ask_judge", params, inputs, tmp_path / "out"))
    assert done.counts["judge_tokens"] > 0
    found = weigh(Judged("oak", pairs_of(tmp_path / "out")), 0.05)
    assert found.preference is None


def test_a_judge_that_can_hold_no_question_has_no_answer(written: Path, tmp_path: Path) -> None:
    judge = write_model(tmp_path / "judge", "qwen2", max_position_embeddings=64)
    params = {"judge": "j" * 64, "engine": "transformers"}
    inputs = {"pairs": str(written / "pairs"), "model": str(judge)}
    done = ask_judge.run(TaskAlone("ask_judge", params, inputs, tmp_path / "out"))
    assert done.counts["judge_tokens"] == 0
    assert all(pair.replies in ((), ("", "")) for pair in pairs_of(tmp_path / "out"))


def test_a_damaged_judge_is_told(written: Path, tmp_path: Path) -> None:
    judge = write_model(tmp_path / "judge", "qwen2")
    (judge / "config.json").write_text("{")
    task = TaskAlone(
        "ask_judge",
        {"judge": "j"},
        {"pairs": str(written / "pairs"), "model": str(judge)},
        tmp_path / "out",
    )
    with pytest.raises(CorruptArtifactError):
        engines.open_engine(task)
