"""The task `score_texts`: how well a model predicts texts that somebody names, as a verdict scores.

inputs: model, texts (a JSON list of strings) · params: engine (torch or mlx), device (of torch:
auto, cpu or cuda), saved (the folder of what this machine has scored before; empty: none)
outputs: nats (nats.json: a number for each text) · counts: texts
"""

import json
from pathlib import Path

from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.evaluate.device_choice import AUTO, chosen_device
from jupiterd.workers.evaluate.saved_nats import SavedNats, computed_on
from jupiterd.workers.evaluate.score import DEFAULT_BATCH_WINDOWS
from jupiterd.workers.evaluate.score_file import write_text
from jupiterd.workers.evaluate.score_table import Means, text_nats
from jupiterd.workers.evaluate.scorers import CPU, TORCH
from jupiterd.workers.link import Task


def run(task: Task) -> TaskFinished:
    """Do the task that was given.

    Raises:
        CorruptArtifactError: the folder holds no model that can be loaded.
    """
    texts: list[str] = json.loads(task.inputs["texts"].read_text(encoding="utf-8"))
    engine, saved = str(task.params.get("engine", TORCH)), str(task.params.get("saved", ""))
    device = chosen_device(str(task.params.get("device", AUTO))) if engine == TORCH else CPU
    kept = SavedNats(Path(saved) if saved else None, computed_on(engine, device))
    nats = text_nats(
        task.inputs["model"],
        texts,
        Means(DEFAULT_BATCH_WINDOWS, engine, device, kept),
        lambda done: task.progress(done, len(texts), "texts"),
    )
    write_text(task.output_dir / "nats" / "nats.json", json.dumps(nats))
    return TaskFinished({"nats": "nats"}, {"texts": len(texts)})
