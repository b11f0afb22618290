"""Which engine scores: the one that the machine has, and torch where it doesn't know a model.

Owns that choice. Scores of both agree to 1e-5 bits per byte, as those of a CPU and a GPU do, and
all models of one comparison are scored by one engine wherever it knows them all.
"""

import importlib.util
from pathlib import Path

from jupiterd.errors import UnknownModelError
from jupiterd.workers.evaluate.text_scorer import TextScorer

TORCH, MLX = "torch", "mlx"
CPU = "cpu"


def open_scorer(folder: Path, engine: str = TORCH, device: str = CPU) -> TextScorer:
    """Load a model folder.

    Args:
        folder: a Hugging Face folder.
        engine: which is to score.
        device: of torch, such as `cuda:0`; MLX has its own.

    Raises:
        CorruptArtifactError: the folder holds no model that can be loaded.
        UnknownModelError: the engine doesn't know its architecture, and torch isn't here.
    """
    if engine == MLX:
        from jupiterd.workers.evaluate.mlx_language_model import MlxLanguageModel

        try:
            return MlxLanguageModel(folder)
        except UnknownModelError:
            if importlib.util.find_spec("torch") is None:
                raise
    from jupiterd.workers.evaluate.language_model import LanguageModel

    return LanguageModel(folder, device)
