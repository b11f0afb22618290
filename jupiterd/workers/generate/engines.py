"""Which engine an item of generating is done with.

Owns that choice, and where the key of a server comes from. Doesn't know how any of them writes.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupiterd.cycle.domain.generator import generator_from
from jupiterd.errors import GeneratorRefusedError, UnknownModelError
from jupiterd.workers.generate.engine import WritingEngine
from jupiterd.workers.link import Task
from jupiterd.workers.memory_room import halved

if TYPE_CHECKING:  # its HTTP library is imported for servers alone
    from jupiterd.workers.generate.folder_engine import FolderEngine
    from jupiterd.workers.generate.server_client import ServerPatience

MLX, AUTO = "mlx", "auto"


def open_engine(task: Task, patience: "ServerPatience | None" = None) -> WritingEngine:
    """Return what the task's params name: a server, or a model folder on MLX or transformers.

    patience: with a server, where it isn't the usual one

    Raises:
        CorruptArtifactError: the model can't be read.
        GeneratorRefusedError: the server's key isn't in this machine's environment.
    """
    server = generator_from(task.params.get("server", {}))
    if server is not None:
        from jupiterd.workers.generate.server_engine import ServerEngine

        key = _key(server.api_key_env)
        return ServerEngine(server, key, is_stopped=lambda: task.stop_requested, patience=patience)
    return engine_of_folder(task.inputs["model"], task.params)


def engine_of_folder(folder: Path, params: Mapping[str, Any]) -> WritingEngine:
    """Return a model folder on what the params name, MLX or transformers.

    Raises:
        CorruptArtifactError: the model can't be read.
        ModelTooLargeError: it was killed for memory with a single prompt before.
    """
    engine = _opened(folder, params)
    engine.batch = halved(engine.batch, params, "prompt")
    return engine


def _opened(folder: Path, params: Mapping[str, Any]) -> "FolderEngine":
    if params.get("engine") == MLX:
        from jupiterd.workers.generate.mlx_engine import MlxWritingEngine

        try:
            return MlxWritingEngine(folder)
        except UnknownModelError:
            if params.get("wanted_engine") != AUTO:
                raise
    from jupiterd.workers.generate.transformers_engine import CUDA, TransformersEngine

    return TransformersEngine(folder, str(params.get("device", CUDA)))


def _key(name: str) -> str:
    """Return the key in a variable of this process; empty where none is named."""
    if not name:
        return ""
    key = os.environ.get(name, "")
    if not key:
        raise GeneratorRefusedError(
            f"the environment of jupiterd has no {name}",
            f"start jupiterd with {name}=KEY on each machine that generates",
        )
    return key
