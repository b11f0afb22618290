"""A folder that mlx-lm has quantized, as the command looks at it before anything starts."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from jupiterd.ctl.hub.listing import HubListing
from jupiterd.ctl.hub.listing_diagnosis import check_kinds
from jupiterd.ctl.hub.names import HubName
from jupiterd.ctl.sources.folder_diagnosis import check_folder
from jupiterd.errors import UsageError
from tests.unit.cycle.training.test_given_quantized import LLAMA, OF_MLX

BYTES = {"U32": 4, "BF16": 2}
CONFIG: dict[str, Any] = {**LLAMA, "num_hidden_layers": 1, "quantization": OF_MLX}
MATRICES = {
    "self_attn.q_proj": (64, 64), "self_attn.k_proj": (64, 64), "self_attn.v_proj": (64, 64),
    "self_attn.o_proj": (64, 64), "mlp.gate_proj": (128, 64), "mlp.up_proj": (128, 64),
    "mlp.down_proj": (64, 128),
}  # fmt: skip


def tensors() -> dict[str, tuple[str, tuple[int, ...]]]:
    layer = "model.layers.0."
    whole = {f"{layer}{path}": size for path, size in MATRICES.items()}
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for path, (rows, columns) in {**whole, "model.embed_tokens": (320, 64)}.items():
        found[f"{path}.weight"] = ("U32", (rows, columns // 8))
        found |= {
            f"{path}.{part}": ("BF16", (rows, columns // 64)) for part in ("scales", "biases")
        }
    norms = ("model.norm", f"{layer}input_layernorm", f"{layer}post_attention_layernorm")
    return found | {f"{norm}.weight": ("BF16", (64,)) for norm in norms}


def write(folder: Path, held: dict[str, tuple[str, tuple[int, ...]]]) -> Path:
    head, end = dict[str, Any](), 0
    for name, (kind, shape) in held.items():
        size = BYTES[kind]
        for each in shape:
            size *= each
        head[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(head).encode()
    file = folder / "model.safetensors"
    file.write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def test_packed_weights_are_compared_as_those_that_they_stand_for(tmp_path: Path):
    assert check_folder(write(tmp_path, tensors()), CONFIG)


def test_packed_weights_of_another_model_are_told(tmp_path: Path):
    held = tensors() | {"model.layers.0.mlp.up_proj.weight": ("U32", (96, 8))}
    with pytest.raises(UsageError, match=r"up_proj\.weight of 96 x 64, and its config"):
        check_folder(write(tmp_path, held), CONFIG)


def test_packed_weights_are_no_weights_where_the_configuration_says_nothing_of_it(tmp_path: Path):
    with pytest.raises(UsageError, match="dtype U32"):
        check_folder(write(tmp_path, tensors()), {**CONFIG, "quantization": None})


def test_those_of_the_hub_are_looked_at_in_the_same_way():
    listing = HubListing(HubName("a/b", "main"), "c" * 40, (), {"U32": 9, "BF16": 1})
    check_kinds(listing, is_packed=True)
    with pytest.raises(UsageError, match="dtype U32"):
        check_kinds(listing)
