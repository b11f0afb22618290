"""Writing with a real, tiny model: batches, seeds, and the samples that come of it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.cycle.training.plan import derive
from jupiterd.errors import CorruptArtifactError, UsageError, WorkStoppedError
from jupiterd.protocol.frames import Progressed, TaskFinished
from jupiterd.workers.generate import answering, prompt, samples
from jupiterd.workers.generate.documents import Stripe, choose_prompts, own_documents
from jupiterd.workers.generate.engine import Sampling
from jupiterd.workers.generate.function_prompts import FunctionPromptMaker
from jupiterd.workers.generate.grounded_prompt import GroundedPrompt
from jupiterd.workers.generate.model_folder import OpenModel, open_model
from jupiterd.workers.generate.sampler import write_on
from jupiterd.workers.samples.sample_file import SampleWriter, read_samples
from jupiterd.workers.tokens.shards import ShardWriter
from jupiterd.workers.tokens.tokenizer import save_tokenizer, tokenizer_hash, train_tokenizer
from jupiterd.workers.train.torch import torch_rank
from tests.support.workers.tiny_run import TaskAlone, tiny_shape, train_params

GREEDY = Sampling(max_tokens=12, temperature=0.0, top_p=1.0)
SEQ_LEN = 64
STEPS = 120


def source(number: int) -> str:
    return (
        f"def work_{number}(value):\n    first = value\n    second = first\n"
        "    third = second\n    return third\n\n\n"
    )


def real(text: str, **changes: Any) -> Sample:
    fields: dict[str, Any] = {
        "id": text_hash(text),
        "text": text,
        "kind": "real",
        "depth": 0,
        "parents": (),
        "cluster_id": "mod",
        "source_uri": "python-stdlib:mod.py",
        "revision": "3.11",
        "license": "PSF-2.0",
        "collector": "python_stdlib@1",
        "fetched_at": "2026-11-01T00:00:00Z",
        "language": "code:python",
    }
    return Sample(**(fields | changes))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint of a tiny model that has learnt one kind of function by heart."""
    folder = tmp_path_factory.mktemp("model")
    text = "".join(source(number) for number in range(40))
    tokenizer = train_tokenizer([text], 300)
    save_tokenizer(tokenizer, folder / "tokenizer")
    ids = [0, *tokenizer.encode(text, add_special_tokens=False).ids]
    writer = ShardWriter(folder / "shards", 300)
    writer.append(ids)
    writer.finish(
        seq_len=SEQ_LEN,
        tokenizer_hash=tokenizer_hash(folder / "tokenizer"),
        documents=1,
        size_bytes=len(text),
    )
    shape = tiny_shape(seq_len=SEQ_LEN)
    plan = derive(shape, 1, {"steps": STEPS, "batch_sequences": 4, "learning_rate": 0.02})
    inputs = {"shards": str(folder / "shards"), "tokenizer": str(folder / "tokenizer")}
    torch_rank.run(TaskAlone("train", train_params(shape, plan), inputs, folder / "out"))
    return folder / "out" / f"checkpoint-{STEPS:08}"


@pytest.fixture(scope="module")
def generator(model: Path) -> OpenModel:
    return open_model(model)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    with SampleWriter(tmp_path / "documents") as writer:
        for number in range(6):
            writer.add(real(source(number) + source(number + 100)))
        writer.add(real("nothing to complete here\n"))
    return tmp_path / "documents"


def write(
    generator: OpenModel, prompts: list[list[int]], sampling: Sampling, seed: int = 0, *done: Any
) -> list[list[int]]:
    seeds = [seed * 1000 + number for number in range(len(prompts))]
    return [row for row, _ in write_on(generator, prompts, sampling, seeds, *done)]


def generate(
    model: Path, documents: Path, output: Path, **changes: Any
) -> tuple[TaskFinished, TaskAlone]:
    params: dict[str, Any] = {
        "template": {"kind": "complete_function", "samples": 8},
        "seed": 3,
        "max_tokens": 30,
        "temperature": 0.3,
        "top_p": 0.9,
        "batch": 3,
        "generator": "a1" * 32,
        "fetched_at": "2026-11-21T10:00:00Z",
    }
    inputs = {"model": str(model), "train.0": str(documents)}
    task = TaskAlone("generate", params | changes, inputs, output)
    return samples.run(task), task


@pytest.mark.full
def test_a_row_of_a_batch_is_what_it_would_be_alone(generator: OpenModel):
    prompts = [[0, 40, 41, 42, 43, 44, 45], [0, 50], [0, 60, 61, 62]]
    together = write(generator, prompts, GREEDY)
    assert together == [write(generator, [one], GREEDY)[0] for one in prompts]


@pytest.mark.full
def test_a_row_draws_by_its_own_seed_whoever_is_in_its_batch(generator: OpenModel):
    sampling = Sampling(max_tokens=12, temperature=1.5, top_p=1.0)
    prompts, seeds = [[0, 40, 41], [0, 50], [0, 60]], [7, 8, 9]
    together = write_on(generator, prompts, sampling, seeds)
    assert together[1:] == write_on(generator, prompts[1:], sampling, seeds[1:])


def test_the_cache_gives_what_the_whole_text_gives(generator: OpenModel):
    tokens = [0, 40, 41, 42]
    (row,) = write(generator, [tokens], GREEDY)
    for token in row:
        with torch.inference_mode():
            logits = generator.model(torch.tensor([tokens]), use_cache=False).logits[0, -1]
        assert int(logits.argmax()) == token
        tokens.append(token)


def test_a_seed_gives_the_same_texts_and_another_seed_others(generator: OpenModel):
    sampling = Sampling(max_tokens=12, temperature=3.0, top_p=1.0)
    prompts = [[0, 40], [0, 50]]
    first = write(generator, prompts, sampling, 1)
    assert write(generator, prompts, sampling, 1) == first
    assert write(generator, prompts, sampling, 2) != first


def test_a_tiny_nucleus_leaves_the_likeliest_alone(generator: OpenModel):
    nucleus = Sampling(max_tokens=12, temperature=1.0, top_p=1e-6)
    assert write(generator, [[0, 40]], nucleus) == write(generator, [[0, 40]], GREEDY)


def test_nothing_is_written_past_what_the_model_can_hold(generator: OpenModel):
    (row,) = write(generator, [[40] * 60], Sampling(50, 0.0, 1.0))
    assert len(row) <= SEQ_LEN - 60


def test_a_row_that_is_done_stops(generator: OpenModel):
    def is_done(number: int, row: list[int]) -> bool:
        return not number and len(row) == 3

    (row, other) = write(generator, [[0, 40], [0, 40]], GREEDY, 0, is_done)
    assert (len(row), len(other)) == (3, 12)


def test_samples_name_their_parent_template_generator_and_sampler(
    model: Path, documents: Path, tmp_path: Path
):
    finished, task = generate(model, documents, tmp_path / "out")
    made = list(read_samples(tmp_path / "out" / "samples"))
    by_id = {sample.id: sample for sample in read_samples(documents)}
    assert finished.outputs == {name: name for name in ("samples", "parents", "refused")}
    parents = list(read_samples(tmp_path / "out" / "parents"))
    assert {each.id for each in parents} == {each.parents[0] for each in made}
    assert all(by_id[each.id] == each for each in parents)
    assert finished.counts["prompts"] == 8
    assert finished.counts["samples"] == len(made) > 3, "it has learnt to write functions"
    for sample in made:
        (parent,) = sample.parents
        assert sample.text.splitlines()[0] in by_id[parent].text
        assert (sample.kind, sample.depth, sample.template) == ("synthetic", 1, "complete_function")
        assert (sample.generator, sample.license, sample.cluster_id) == (
            "a1" * 32,
            "PSF-2.0",
            "mod",
        )
        assert sample.sampler == {"seed": 3, "max_tokens": 30, "temperature": 0.3, "top_p": 0.9}
        compile(sample.text, "sample", "exec")
    last = task.frames[-1]
    assert isinstance(last, Progressed)
    assert (last.done, last.total, last.unit) == (8, 8, "prompts")
    assert last.values["tokens_per_s"] > 0
    assert last.values["accepted_per_min"] > 0


def test_doing_it_again_gives_the_same_bytes(model: Path, documents: Path, tmp_path: Path):
    files = []
    for name in ("a", "b"):
        generate(model, documents, tmp_path / name)
        files.append((tmp_path / name / "samples" / "samples.jsonl.zst").read_bytes())
    assert files[0] == files[1]


def chosen(
    documents: list[Sample], wanted: int, *, may_repeat: bool = False
) -> list[GroundedPrompt]:
    prompts = choose_prompts(
        documents,
        FunctionPromptMaker(),
        lambda _: True,
        wanted=wanted,
        seed=1,
        may_repeat=may_repeat,
    )
    return [each.ask for each in prompts]


def test_every_document_gets_its_turn_before_one_gets_a_second(documents: Path):
    read = list(read_samples(documents))
    assert len({ask.parent.id for ask in chosen(read, 6)}) == 6
    assert len(chosen(read, 100)) == 12, "each document holds two functions"


def test_no_document_is_asked_more_than_four_times(documents: Path):
    read = list(read_samples(documents))
    assert len(chosen(read, 100, may_repeat=True)) == 24
    many = real("".join(source(number) for number in range(9)))
    assert len(chosen([many], 100)) == 4


def test_items_part_the_documents_among_them_in_the_same_order_everywhere(documents: Path):
    def own(number: int, wanted: int = 9, *, backwards: bool = False) -> list[str]:
        read = list(read_samples(documents))
        read = read[::-1] if backwards else read
        return [s.id for s in own_documents(lambda: read, Stripe("7/2", number, 3), wanted)]

    parts = [own(number) for number in range(3)]
    assert parts == [own(number, backwards=True) for number in range(3)]
    assert sorted(each for part in parts for each in part) == sorted(
        sample.id for sample in read_samples(documents)
    )
    assert sorted(map(len, parts)) == [2, 2, 3]


def test_no_more_documents_are_held_than_may_be_needed():
    read = [real(f"text {number}") for number in range(50)]
    assert len(own_documents(lambda: read, Stripe("o", 0, 1), 4)) == 12


def test_nothing_is_made_of_what_was_made():
    parent = real(source(1))
    child = real(source(2), kind="synthetic", depth=1, parents=(parent.id,))
    assert own_documents(lambda: [child, parent], Stripe("o", 0, 1), 9) == [parent]


def test_documents_without_functions_give_no_samples(model: Path, tmp_path: Path):
    with SampleWriter(tmp_path / "documents") as writer:
        writer.add(real("words\n"))
    finished, _ = generate(model, tmp_path / "documents", tmp_path / "out")
    assert (finished.counts["prompts"], finished.counts["samples"]) == (0, 0)
    assert list(read_samples(tmp_path / "out" / "samples")) == []


def test_what_was_answered_before_is_not_written_again(
    model: Path, documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(answering, "cache_folder", lambda _: tmp_path / "answers")

    def work(name: str) -> tuple[TaskFinished, bytes]:
        finished, _ = generate(model, documents, tmp_path / name)
        return finished, (tmp_path / name / "samples" / "samples.jsonl.zst").read_bytes()

    first, made = work("first")
    again, same = work("again")
    assert first.counts["kept"] == 0
    assert (again.counts["kept"], again.counts["tokens"]) == (8, 0)
    assert made == same


def test_an_unknown_template_is_refused(model: Path, documents: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="no template haiku"):
        generate(model, documents, tmp_path / "out", template={"kind": "haiku", "samples": 1})


def test_a_stop_ends_it_without_outputs(model: Path, documents: Path, tmp_path: Path):
    inputs = {"model": str(model), "train.0": str(documents)}
    task = TaskAlone("generate", generate_params(), inputs, tmp_path / "out")
    task.stop()
    with pytest.raises(WorkStoppedError):
        samples.run(task)
    assert list((tmp_path / "out").iterdir()) == []


def generate_params() -> dict[str, Any]:
    return {
        "template": {"kind": "complete_function", "samples": 2},
        "seed": 1,
        "max_tokens": 8,
        "temperature": 0.5,
        "top_p": 1.0,
        "generator": "",
        "fetched_at": "",
    }


def test_a_folder_without_a_model_is_told(documents: Path, tmp_path: Path):
    with pytest.raises(CorruptArtifactError, match="no tokenizer can be read"):
        generate(tmp_path, documents, tmp_path / "out")


def test_a_half_written_model_is_told(model: Path, documents: Path, tmp_path: Path):
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("tokenizer.json", "config.json"):
        (broken / name).write_bytes((model / name).read_bytes())
    with pytest.raises(CorruptArtifactError, match="no model can be read from broken"):
        generate(broken, documents, tmp_path / "out")


def test_prompts_are_completed_for_people_to_read(model: Path, tmp_path: Path):
    params = {"prompts": ["def work_7(value):\n   ", "def "], "max_tokens": 8, "seed": 1}
    task = TaskAlone("prompt", params, {"model": str(model)}, tmp_path)
    finished = prompt.run(task)
    assert set(finished.summary) == {"completion.0", "completion.1"}
    assert "first = value" in str(finished.summary["completion.0"])
    assert finished.outputs == {}
