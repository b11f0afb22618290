"""What a model's layers keep of a token until the backward pass, in bytes, by architecture.

Pure. Owns that arithmetic. Doesn't know weights, optimizers or devices.

Bytes of one layer and token in fp32, where h is the width, q and k the widths of all query and key
heads, f that of the feed-forward part, T the tokens of a sequence. Counted with torch's
saved_tensors_hooks (torch 2.13, transformers 5.23, one thread of a CPU, no mask), on MLX (0.32.4,
CPU) by the peak of the process:

                                               norms   attention                    feed-forward
    llama, mistral, granite, smollm3           24 h    8 q + 8 k + 4 heads          16 f
    qwen3, olmo2: queries and keys normed      24 h    16 q + 16 k + 8 heads        16 f
    gemma3_text: norms behind both parts, too  40 h    16 q + 16 k + 8 heads        16 f
    gpt2, gpt_neox: no gate                    16 h    8 q + 8 k + 4 heads           8 f
    the same on MLX                                    and 4 heads T: each score

torch compiles for CUDA and has one kernel for a norm there: 16 h. In bf16 what is multiplied takes
half; what is added up stays as it is.
"""

from typing import Final

from jupiterd.cycle.training.architectures import Sizes

WITHOUT_QUERY_NORMS: Final = frozenset({
    "arcee", "cohere", "gpt2", "gpt_neox", "gpt_neox_japanese", "gptj", "granite", "helium",
    "llama", "mistral", "mixtral", "nemotron", "olmo", "opt", "phi", "phi3", "qwen2", "smollm3",
    "stablelm", "starcoder2",
})  # fmt: skip
"""Architectures whose queries and keys aren't normed; others are counted as if they were."""

WITHOUT_GATE: Final = frozenset({
    "bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "mpt",
    "nemotron", "opt", "phi", "starcoder2",
})  # fmt: skip
"""Architectures whose feed-forward part has two matrices."""

FOUR_NORMS: Final = frozenset({"gemma2", "gemma3_text"})
"""Architectures that have norms behind both parts of a layer, too."""


def layer_bytes(
    layer: Sizes, residual: int, wide: int, *, fuses_norms: bool, keeps_scores: bool
) -> int:
    """Return what one layer keeps of one token.

    residual, wide: bytes of a number that is added up, and of one that is multiplied
    fuses_norms: a norm is one kernel, as on CUDA; keeps_scores: attention is written out, as on MLX
    """
    kind = layer.architecture
    norms = _norm_bytes(kind, residual, wide, fuses=fuses_norms) * layer.hidden
    widths = (layer.heads + layer.kv_heads) * layer.head_dim
    normed = 1 if kind in WITHOUT_QUERY_NORMS else 2
    scores = wide * layer.heads * layer.seq_len if keeps_scores else 0
    attention = normed * (2 * wide * widths + 4 * layer.heads) + scores
    products = 2 if kind in WITHOUT_GATE else 4
    return norms + attention + products * wide * layer.ff


def _norm_bytes(kind: str, residual: int, wide: int, *, fuses: bool) -> int:
    """Return what the norms keep for each number of the width: their input, and what follows."""
    if kind in WITHOUT_GATE:  # these have torch's LayerNorm, which is one kernel everywhere
        return 2 * (residual + wide)
    one = residual + wide if fuses else 2 * residual + wide
    return 2 * one + (4 * residual if kind in FOUR_NORMS else 0)
