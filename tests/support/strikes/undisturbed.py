"""The data of a cycle's first round, made again in one go on one machine.

Owns nothing of its own: the order is that of `phases`, the work is done by the real workers. What
comes out is what a cycle must come to that was killed on the way.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from jupiterd.cluster.facts.facts import CycleStarted
from jupiterd.cycle.base.work_item import WorkItem, WorkResult
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.domain.generator import generator_from
from jupiterd.cycle.phases.steps import RunItems
from jupiterd.cycle.phases.table import next_step
from jupiterd.cycle.phases.view import RoundView
from jupiterd.cycle.training.plan import parse_model
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.process import start_worker
from jupiterd.protocol.frames import RunTask, TaskFinished
from jupiterd.store.artifacts import ArtifactStore


async def data_of_round_one(started: CycleStarted, folder: Path) -> dict[str, Mapping[str, str]]:
    """Return item id -> its artifacts, for everything before training."""
    domain = parse_domain(started.domain_yaml, "tiny.yaml")
    shape = parse_model(started.model_yaml, domain.training.model_dump(exclude_none=True))
    store = ArtifactStore(folder / "store")
    completed: dict[str, WorkResult] = {}
    while True:
        view = RoundView(
            cycle=started.cycle,
            round=1,
            seed=started.seed,
            started_at=started.started_at,
            completed=completed,
            candidate=None,
            looks=0,
            named_generator=generator_from(started.generator),
        )
        step, _ = next_step(view, domain, shape)
        if not isinstance(step, RunItems):
            return {item: result.outputs for item, result in completed.items()}
        for item in step.items:
            output = Path(tempfile.mkdtemp(prefix=item.phase, dir=folder))
            completed[item.id] = await _done(item, store, output)


async def _done(item: WorkItem, store: ArtifactStore, output: Path) -> WorkResult:
    inputs = {name: str(store.path(artifact)) for name, artifact in item.inputs.items()}
    order = RunTask(item.task, dict(item.params), inputs, str(output))
    environment = worker_environment(item.task, item.params)
    async with start_worker(order, environment, output.with_suffix(".log")) as worker:
        async for frame in worker.frames():
            if isinstance(frame, TaskFinished):
                kept = {name: store.ingest(output / path) for name, path in frame.outputs.items()}
                return WorkResult(kept, frame.counts, frame.summary)
    raise AssertionError(output.with_suffix(".log").read_text())
