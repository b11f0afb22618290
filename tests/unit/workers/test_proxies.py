"""What small students learn from, and that they tell good text from bad."""

import json
import random
from dataclasses import replace

import pytest
import torch

from jupiterd.cycle.gate.proxy import KNOWS_NOTHING_BPB, Arm, compare
from jupiterd.cycle.gate.record import read_proxy_lines
from jupiterd.cycle.training.plan import derive
from jupiterd.errors import LossDivergedError, ModelTooLargeError, OutOfMemoryError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.proxies import arm, student, text
from jupiterd.workers.samples.sample_file import read_samples
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.support.workers.data_material import (
    files_of,
    function,
    real,
    run_worker,
    synthetic,
    write,
)
from tests.support.workers.tiny_run import TaskAlone, tiny_shape

LIMITS = {"min_document_bytes": 16, "max_document_bytes": 4096, "max_cluster_documents": 8}
REAL = [replace(real(function(n)), cluster_id=f"c{n % 10}") for n in range(60)]
MADE = [
    replace(synthetic(function(1000 + n), parent=REAL[n].id), cluster_id=REAL[n].cluster_id)
    for n in range(60)
]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def garbage(number):
    """Return a function of random words: it parses, and teaches nothing about the others."""
    chance = random.Random(number)

    def word():
        return "".join(chance.choices(LETTERS, k=8))

    lines = [f"    {word()} = ['{word()} {word()}', '{word()}', '{word()} {word()}']"]
    lines += [f"    {word()} = {{'{word()}': '{word()} {word()} {word()}'}}" for _ in range(3)]
    return "\n".join([f"def {word()}({word()}, {word()}):", *lines, f"    return '{word()}'", ""])


BAD = [
    replace(synthetic(garbage(n), parent=REAL[n].id), cluster_id=REAL[n].cluster_id)
    for n in range(60)
]


def chosen(folder, kept=REAL, holdout=(), **params):
    """Choose what small students learn from; return the task's folder and its end."""
    inputs = {
        "kept": write(folder / "kept", sorted(kept, key=lambda sample: sample.id)),
        "holdout.0": write(folder / "holdout", holdout),
    }
    told = {"real_bytes": 3000, "scored_bytes": 800, "limits": LIMITS, "seed": 7} | params
    task = TaskAlone("choose_proxy_text", told, inputs, folder / "chosen")
    return folder / "chosen", text.run(task)


def clusters(folder):
    return {sample.cluster_id for sample in read_samples(folder)}


def test_they_are_scored_on_the_dev_part_of_the_holdout_alone(tmp_path):
    parts = ("dev", "dev", "gate", "vault")
    held_out = [
        replace(real(function(500 + n), cluster=f"h{n}"), split=part)
        for n, part in enumerate(parts)
    ]
    folder, end = chosen(tmp_path, holdout=held_out)
    assert {sample.split for sample in read_samples(folder / "yardstick")} == {"dev"}
    assert end.counts["yardstick_documents"] == 2
    assert end.summary["set_aside_clusters"] == 0
    sizes = [len(sample.text.encode()) for sample in read_samples(folder / "real")]
    assert 3000 <= sum(sizes) < 3000 + max(sizes)


def test_without_a_dev_part_clusters_are_set_aside_from_which_nobody_learns(tmp_path):
    gate = [replace(real(function(500), cluster="h"), split="gate")]
    packed = {"synthetic_share": 0.5, "seed": 7}
    folder, end = chosen(tmp_path, [*REAL, *MADE], gate, packed=packed, real_bytes=100_000)
    aside = clusters(folder / "yardstick")
    assert 0 < len(aside) == end.summary["set_aside_clusters"] <= 3
    assert aside.isdisjoint(clusters(folder / "real") | clusters(folder / "synthetic") | {"h"})
    assert {sample.kind for sample in read_samples(folder / "synthetic")} == {"synthetic"}


def test_no_more_than_a_quarter_of_the_text_is_set_aside(tmp_path):
    folder, _ = chosen(tmp_path, scored_bytes=10**9, real_bytes=10**9)
    whole, learned = (
        sum(len(sample.text.encode()) for sample in samples)
        for samples in (REAL, read_samples(folder / "real"))
    )
    assert 0.75 <= learned / whole < 0.95


def test_of_the_packed_text_a_part_is_taken_that_fits_the_real_one(tmp_path):
    packed = {"synthetic_share": 0.3, "seed": 7}
    folder, _ = chosen(tmp_path, [*REAL, *MADE], packed=packed, real_bytes=4000)
    real_bytes, made_bytes = (
        sum(len(sample.text.encode()) for sample in read_samples(folder / name))
        for name in ("real", "synthetic")
    )
    assert made_bytes / (made_bytes + real_bytes) == pytest.approx(0.3, abs=0.06)


def test_the_same_text_is_chosen_whoever_chooses_it(tmp_path):
    folders = [chosen(tmp_path / name)[0] for name in "ab"]
    assert files_of(folders[0]) == files_of(folders[1])


def test_one_long_document_is_enough_and_too_few_clusters_leave_nothing_to_score(tmp_path):
    folder, end = chosen(tmp_path, [real(function(1, body_lines=400))], real_bytes=10)
    assert len(list(read_samples(folder / "real"))) == 1
    assert end.counts["yardstick_documents"] == 0


@pytest.fixture
def tokenizer(tmp_path):
    save_tokenizer(train_tokenizer((each.text for each in REAL), 300), tmp_path / "tokenizer")
    return tmp_path / "tokenizer"


def packed(folder, tokenizer, written=None, share=0.5):
    """Pack an arm of the text in `folder`; return its folder and the task's end."""
    inputs = {
        "real": folder / "chosen" / "real",
        "yardstick": folder / "chosen" / "yardstick",
        "holdout.0": folder / "holdout",
        "tokenizer": tokenizer,
    }
    if written is not None:
        samples = sorted(written, key=lambda sample: sample.id)
        inputs["samples.0"] = write(folder / f"written-{samples[0].id[:8]}", samples)
    params = {
        "language": "code:python",
        "license_policy": {"allow": ["PSF-2.0"]},
        "seq_len": 16,
        "synthetic_share": share,
        "seed": 7,
    }
    out = folder / f"arm-{len(list(folder.iterdir()))}"
    return out, arm.run(TaskAlone("pack_arm", params, inputs, out))


def test_generated_text_passes_the_filters_and_resembles_no_real_or_held_out_text(
    tmp_path, tokenizer
):
    held_out = [replace(real(function(700, body_lines=30), cluster="h"), split="gate")]
    chosen(tmp_path, holdout=held_out)
    learned = next(iter(read_samples(tmp_path / "chosen" / "real")))
    recited = synthetic(held_out[0].text + "\n\n" + function(3))
    copied = synthetic(learned.text)
    broken = synthetic("def broken(:\n    return")
    _, end = packed(tmp_path, tokenizer, [recited, copied, broken, MADE[0]])
    assert end.counts["arm_synthetic_documents"] == 1


def test_no_arm_has_more_generated_text_than_the_share(tmp_path, tokenizer):
    chosen(tmp_path)
    out, _ = packed(tmp_path, tokenizer, MADE, share=0.2)
    assert arm.synthetic_share_of(out / "shards") == pytest.approx(0.2, abs=0.05)
    alone, _ = packed(tmp_path, tokenizer)
    assert arm.synthetic_share_of(alone / "shards") == 0.0
    assert json.loads((alone / "shards" / arm.ARM_FILE).read_text())["synthetic_documents"] == 0


def student_task(folder, tokenizer, shards, name, seed, steps=60):
    shape = tiny_shape()
    recipe = shape.recipe.model_copy(update={"first_steps": steps, "batch_sequences": 8})
    shape = shape.model_copy(update={"recipe": recipe})
    params = {
        "arm": name,
        "seed": seed,
        "shape": shape.to_plain(),
        "plan": derive(shape, 1, seed=seed).to_plain(),
        "round": 1,
        "spread_bpb": 0.02,
        "limits": LIMITS,
    }
    inputs = {
        "shards": shards / "shards",
        "tokenizer": tokenizer,
        "yardstick": folder / "chosen" / "yardstick",
    }
    return TaskAlone("train_proxy", params, inputs, folder / f"student-{name}-{seed}")


@pytest.mark.full
def test_students_of_garbage_are_found_to_learn_less_on_the_same_tokens(tmp_path, tokenizer):
    chosen(tmp_path)
    arms = {
        Arm.CANDIDATE: packed(tmp_path, tokenizer, BAD)[0],
        Arm.GENERATOR: packed(tmp_path, tokenizer, MADE)[0],
    }
    for name, shards in arms.items():
        for seed in (1, 2):
            student.run(student_task(tmp_path, tokenizer, shards, name, seed))
    files = tmp_path.glob("student-*-?/run/proxies.jsonl")
    runs = read_proxy_lines(path.read_text() for path in files)
    assert len({(run.tokens, run.parameters, run.documents) for run in runs}) == 1
    assert {run.shards for run in runs} == {
        ShardSet(folder / "shards").index.hash for folder in arms.values()
    }
    found = compare(runs, Arm.CANDIDATE, Arm.GENERATOR)
    assert found is not None
    assert found.is_worse, found
    assert found.seeds == (1, 2)


@pytest.mark.full
def test_a_student_comes_out_the_same_in_a_process_of_its_own(tmp_path, tokenizer):
    chosen(tmp_path)
    shards, _ = packed(tmp_path, tokenizer, MADE)
    task = student_task(tmp_path, tokenizer, shards, "mix", 3, steps=10)
    here = student.run(task)
    there = run_worker("train_proxy", dict(task.params), task.inputs, tmp_path / "other")
    assert isinstance(there, TaskFinished)
    assert there.summary == here.summary
    assert there.summary["engine"] == "torch on cpu"
    assert 0.1 < float(there.summary["synthetic_share"]) <= 0.5


def test_a_student_that_went_wrong_knows_nothing(tmp_path, tokenizer, monkeypatch):
    def diverge(*_):
        raise LossDivergedError("the loss is no longer a number at step 3")

    chosen(tmp_path)
    shards, _ = packed(tmp_path, tokenizer)
    monkeypatch.setattr(student, "_train", diverge)
    end = student.run(student_task(tmp_path, tokenizer, shards, "real", 1, steps=1))
    assert end.summary["bpb"] == KNOWS_NOTHING_BPB


def with_little_memory(monkeypatch, sequences, seen):
    """Let the device have room for so many sequences at a time."""
    step = TorchEngine.step

    def stepping(engine, batches, learning_rate):
        seen.extend(len(batch.inputs) for batch in batches)
        if max(seen[-len(batches) :]) > sequences:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return step(engine, batches, learning_rate)

    monkeypatch.setattr(TorchEngine, "step", stepping)


def test_a_student_of_a_small_device_learns_the_same_a_few_sequences_at_a_time(
    tmp_path, tokenizer, monkeypatch
):
    chosen(tmp_path)
    shards, _ = packed(tmp_path, tokenizer)
    usual = student.run(student_task(tmp_path, tokenizer, shards, "real", 1, steps=10))
    with_little_memory(monkeypatch, 1, seen := [])
    task = student_task(tmp_path, tokenizer, shards, "real", 2, steps=10)
    task.params = {**task.params, "seed": 1, "plan": {**task.params["plan"], "seed": 1}}
    little = student.run(task)
    assert seen[0] == 2
    assert seen[4:] == [1] * 80
    assert little.summary["bpb"] == pytest.approx(usual.summary["bpb"], abs=1e-4)
    assert little.summary["tokens"] == usual.summary["tokens"]


def test_a_device_without_room_for_one_sequence_says_so(tmp_path, tokenizer, monkeypatch):
    chosen(tmp_path)
    shards, _ = packed(tmp_path, tokenizer)
    with_little_memory(monkeypatch, 0, [])
    with pytest.raises(OutOfMemoryError, match="with a single sequence at a time") as failed:
        student.run(student_task(tmp_path, tokenizer, shards, "real", 1))
    assert isinstance(failed.value, ModelTooLargeError)  # others may have more: ItemMemory


@pytest.mark.full
@pytest.mark.mlx
def test_mlx_trains_the_same_student(tmp_path, tokenizer):
    pytest.importorskip("mlx.core")
    chosen(tmp_path)
    shards, _ = packed(tmp_path, tokenizer)
    task = student_task(tmp_path, tokenizer, shards, "real", 5, steps=8)
    on_torch = student.run(task)
    params = dict(task.params) | {"engine": "mlx"}
    on_mlx = run_worker("train_proxy", params, task.inputs, tmp_path / "mlx")
    assert isinstance(on_mlx, TaskFinished)
    assert str(on_mlx.summary["engine"]).startswith("mlx on ")
    assert on_mlx.summary["bpb"] == pytest.approx(on_torch.summary["bpb"], abs=1e-3)
