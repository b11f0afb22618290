"""Runs whose model no machine may hold: a small model of many layers, and limits that it needs.

Owns the model's folder and the limits. Doesn't know daemons, nor what a test wants to see.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from jupiterd.cycle.training.engine_options import DeviceAbilities, EngineOptions
from jupiterd.cycle.training.memory import candidate_fits
from jupiterd.cycle.training.partition.partition_memory import need_of_part
from jupiterd.cycle.training.plan import derive, parse_model, shape_of_config
from jupiterd.cycle.training.rank_memory import RESERVED_SHARE
from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer
from tests.support.workers.tiny_models import VOCAB, write_model

SEQ_LEN = 64
MODELS = Path(__file__).parents[3] / "config" / "models"
PLENTY = 64 * 10**9

ROOM = 1.1
"""What all have to spare together, of what is cut in the lowest stage."""

DEEP = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 10,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
"""Nearly all of it is layers, of which a rank need hold but a few at a time."""


def write_deep(folder: Path, letters: Path) -> Path:
    """Write a model of random weights whose tokenizer has learned from letters; return it."""
    model = write_model(folder / "deep", "llama", **DEEP)
    texts = [path.read_text() for path in sorted(letters.iterdir())]
    save_tokenizer(train_tokenizer(texts, VOCAB), model)
    return model


def limits_gb(model: Path, ratio: Sequence[int], batch: int) -> list[float]:
    """Return limits that let machines hold a model together in stage 1, in this ratio.

    model: its folder; batch: sequences of a step
    """
    recipe = parse_model((MODELS / "1m.yaml").read_text(encoding="utf-8")).recipe
    config = json.loads((model / "config.json").read_text())
    shape = shape_of_config("deep", config, recipe).model_copy(update={"seq_len": SEQ_LEN})
    plan = derive(shape, 1).model_copy(
        update={
            "options": EngineOptions(optimizer="adamw", gradient_checkpointing="off"),
            "batch_sequences": batch,
            "micro_batch_sequences": 1,
        }
    )
    whole = candidate_fits(shape, plan, DeviceAbilities("torch", "cpu", PLENTY))[0].need
    shares = [ROOM * part / sum(ratio) for part in ratio]
    needs = [need_of_part(whole, shape, 1, share, len(ratio)).total for share in shares]
    return [need / (1 - RESERVED_SHARE) / 1e9 for need in needs]
