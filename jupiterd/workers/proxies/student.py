"""The task `train_proxy`: train one small student and score it on real text it wasn't trained on.

Owns that one run, on torch or MLX, alone; where its device's memory runs out, it begins anew with
half as many sequences at a time. Doesn't compare anything (`cycle.gate.proxy` does).

inputs: shards (of an arm, see `arm`), tokenizer, yardstick (real samples)
params: shape, plan, round, arm, seed, spread_bpb, engine, device, limits of `evaluation`
outputs: run (a folder with proxies.jsonl)
"""

import math
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from jupiterd.cycle.gate.proxy import KNOWS_NOTHING_BPB, ProxyRun
from jupiterd.cycle.gate.record import PROXY_FILE, proxy_lines
from jupiterd.cycle.gate.scores import LN2
from jupiterd.errors import LossDivergedError, WorkStoppedError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.evaluate.documents import ScoringLimits, choose_documents
from jupiterd.workers.evaluate.score_file import write_text
from jupiterd.workers.evaluate.scorers import CPU, MLX, TORCH, open_scorer
from jupiterd.workers.link import Task
from jupiterd.workers.memory_room import halved, with_room
from jupiterd.workers.proxies.arm import synthetic_share_of
from jupiterd.workers.samples.sample_file import read_samples
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.checkpoints.checkpoint import write_model
from jupiterd.workers.train.job import TrainingJob, read_job
from jupiterd.workers.train.loop import StepDone, TrainingLoop
from jupiterd.workers.training_engine import TrainingEngine

BATCH_WINDOWS = 16


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    job = read_job(task, 1)
    sequences = halved(job.plan.micro_batch_sequences, task.params, "sequence")
    student = with_room(lambda size: _trained(task, job, size), sequences, "sequence")
    engine = student.engine
    bpb, documents = _score(task, engine) if student.has_learned else (KNOWS_NOTHING_BPB, 0)
    run = ProxyRun(
        arm=str(task.params["arm"]),
        seed=int(task.params["seed"]),
        bpb=bpb,
        documents=documents,
        tokens=job.plan.steps * job.plan.batch_sequences * job.shape.seq_len,
        parameters=sum(math.prod(values.shape) for values in engine.weights().values()),
        synthetic_share=synthetic_share_of(task.inputs["shards"]),
        shards=job.shards.index.hash,
        engine=f"{engine.name} on {engine.device}",
        spread_bpb=float(task.params["spread_bpb"]),
    )
    write_text(task.output_dir / "run" / PROXY_FILE, proxy_lines([run]))
    counts: dict[str, float] = {"proxy_students": 1, "proxy_tokens": run.tokens}
    return TaskFinished({"run": "run"}, counts, {**vars(run)})


@dataclass(frozen=True)
class _Student:
    engine: TrainingEngine
    has_learned: bool
    """Its training went well to the end."""


def _trained(task: Task, job: TrainingJob, micro_batch_sequences: int) -> _Student:
    """Train with so many sequences in memory at a time; a step's sum is the same whatever it is."""
    plan = job.plan.model_copy(update={"micro_batch_sequences": micro_batch_sequences})
    job = replace(job, plan=plan)
    engine = _engine(task, job)
    try:
        _train(task, job, engine)
    except LossDivergedError:
        return _Student(engine, has_learned=False)
    return _Student(engine, has_learned=True)


def _engine(task: Task, job: TrainingJob) -> TrainingEngine:
    if task.params.get("engine") == MLX:
        from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
        from jupiterd.workers.train.mlx.ring import Ring

        return MlxTrainingEngine(job.shape, job.plan, job.end_token, Ring(0, 1))
    from jupiterd.workers.train.torch.device import use_device
    from jupiterd.workers.train.torch.process_group import ProcessGroup
    from jupiterd.workers.train.torch.torch_engine import TorchEngine

    device = str(task.params.get("device", "cpu"))
    use_device(device)
    return TorchEngine(job.shape, job.plan, job.end_token, ProcessGroup(0, 1), device)


def _train(task: Task, job: TrainingJob, engine: TrainingEngine) -> None:
    """Train from the seed's first weights to the end of the plan."""
    plan = job.plan

    def step_done(done: StepDone) -> None:
        task.progress(done.step, plan.steps, "steps", loss=done.mean_loss)

    engine.begin(has_same_weights=True)
    batches = RankBatches(
        shards=job.shards,
        seed=f"{plan.seed}/proxy",
        batch_sequences=plan.batch_sequences,
        micro_batch_sequences=plan.micro_batch_sequences,
    )
    TrainingLoop(engine, plan, batches, lambda: task.stop_requested, step_done).run(0)
    if task.stop_requested:
        raise WorkStoppedError("training a small student was stopped")


def _score(task: Task, engine: TrainingEngine) -> tuple[float, int]:
    """Return the mean bits per byte over the documents of the yardstick, and how many those are."""
    folder = task.scratch_dir / "student"
    _clear_folder(folder)
    write_model(folder, engine.config, engine.weights(), task.inputs["tokenizer"])
    limits = ScoringLimits(**{name: int(value) for name, value in task.params["limits"].items()})
    documents = choose_documents(read_samples(task.inputs["yardstick"]), limits, 0, 1)
    params = task.params
    model = open_scorer(folder, str(params.get("engine", TORCH)), str(params.get("device", CPU)))
    ids = model.encode([document.text for document in documents])
    nats = with_room(lambda size: model.nats(ids, size, lambda _: None), BATCH_WINDOWS, "window")
    each = [
        nat / (LN2 * document.size_bytes) for nat, document in zip(nats, documents, strict=True)
    ]
    return math.fsum(each) / len(each), len(each)


def _clear_folder(folder: Path) -> None:
    """Make room for a folder that a killed worker may have begun."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
