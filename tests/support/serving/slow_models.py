"""A tiny model with a long context: its answers take long, its loading doesn't."""

from pathlib import Path

from tests.support.workers.tiny_models import write_model

CONTEXT = 4096


def write_chatty(folder: Path, *, is_chat: bool = True, layers: int = 2) -> Path:
    """Write a model that hardly ever ends by itself; return its folder."""
    marks = {"bos_token_id": 1, "eos_token_id": 2}
    return write_model(
        folder,
        "llama",
        is_chat=is_chat,
        max_position_embeddings=CONTEXT,
        num_hidden_layers=layers,
        **marks,
    )
