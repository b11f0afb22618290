"""What mlx-lm 0.32.2 computes as transformers 5.23.0 does.

Written by `python -m tests.bench.models mlx`; a test compares. Owns data alone. The words are those
of `model_traits`.
"""

from collections.abc import Mapping
from typing import Final

PROVEN: Final[Mapping[str, frozenset[str]]] = {
    "gemma2": frozenset(
        {
            "activation gelu_pytorch_tanh",
            "capped attention",
            "capped logits",
            "rope default",
            "tied",
        }
    ),
    "gemma3_text": frozenset(
        {
            "activation gelu_pytorch_tanh",
            "rope default",
            "rope linear",
            "tied",
            "untied",
            "windows",
        }
    ),
    "gpt2": frozenset(
        {
            "activation gelu_new",
            "rope default",
            "tied",
        }
    ),
    "gpt_neox": frozenset(
        {
            "activation gelu",
            "activation gelu_new",
            "activation relu",
            "biases in attention",
            "layers in sequence",
            "positions in a part of each head",
            "rope default",
            "untied",
        }
    ),
    "granite": frozenset(
        {
            "activation silu",
            "biases in attention",
            "biases in feed-forward parts",
            "rope default",
            "rope linear",
            "rope llama3",
            "rope yarn",
            "tied",
            "untied",
        }
    ),
    "llama": frozenset(
        {
            "activation silu",
            "biases in attention",
            "biases in feed-forward parts",
            "rope default",
            "rope dynamic",
            "rope linear",
            "rope llama3",
            "rope yarn",
            "tied",
            "untied",
        }
    ),
    "mistral": frozenset(
        {
            "activation silu",
            "rope default",
            "rope linear",
            "rope llama3",
            "rope yarn",
            "tied",
            "untied",
        }
    ),
    "olmo2": frozenset(
        {
            "activation silu",
            "biases in attention",
            "rope default",
            "rope linear",
            "rope llama3",
            "rope yarn",
            "tied",
            "untied",
        }
    ),
    "olmo3": frozenset(
        {
            "activation silu",
            "rope default",
            "tied",
            "untied",
            "windows",
        }
    ),
    "phi3": frozenset(
        {
            "activation silu",
            "positions in a part of each head",
            "rope default",
            "tied",
            "untied",
        }
    ),
    "qwen2": frozenset(
        {
            "activation silu",
            "rope default",
            "rope linear",
            "rope llama3",
            "rope yarn",
            "tied",
            "untied",
        }
    ),
    "qwen3": frozenset(
        {
            "activation silu",
            "rope default",
            "rope linear",
            "rope llama3",
            "rope yarn",
            "tied",
            "untied",
        }
    ),
    "smollm3": frozenset(
        {
            "activation silu",
            "biases in attention",
            "rope default",
            "rope linear",
            "rope llama3",
            "rope yarn",
            "tied",
            "untied",
        }
    ),
}
"""Architecture -> what its models may ask for."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "cohere2": "logits differ by 0.007 of their spread",
    "hrm_text": "MLX can't make this hrm_text model: Model type hrm_text not supported.",
}
"""Architecture -> the figure or the error that failed."""
