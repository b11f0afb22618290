"""Which engines train adapters beside quantized weights.

Owns that rule, and what is told to those whose adapter doesn't fit. Pure. A run has one kind of
bits: engines quantize differently, so an adapter that learned beside the one's errors wouldn't fit
the other's. So gangs of both engines are refused.
"""

from collections.abc import Iterator
from typing import Final

from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.errors import UsageError

ENGINES: Final = frozenset({"mlx"})
"""Those that train beside quantized weights."""


def check_quantized(engine: str, adapter: AdapterOptions | None) -> None:
    """Raise UsageError where an engine can't keep frozen weights in as few bits as asked."""
    if adapter is not None and adapter.bits and engine not in ENGINES:
        raise UsageError(
            f"--quantize {adapter.quantize}: on {engine} no quantized weights are trained beside",
            "--engine mlx, or leave --quantize out: frozen weights take 2 bytes each in bf16",
        )


def smaller_adapters(
    adapter: AdapterOptions | None, layers: int, engine: str
) -> Iterator[tuple[str, AdapterOptions]]:
    """Yield options that need less memory, as people say them, the least change first."""
    if adapter is None:
        return
    wanted = adapter.layers or layers
    fewer = [count for count in (wanted // 2, wanted // 4) if count]
    for count in fewer:
        yield f"--lora with layers={count}", adapter.model_copy(update={"layers": count})
    if adapter.bits == 4 or engine not in ENGINES:
        return
    quantized = adapter.model_copy(update={"quantize": "4bit"})
    yield "--quantize 4bit", quantized
    for count in fewer:
        changed = quantized.model_copy(update={"layers": count})
        yield f"--quantize 4bit, and --lora with layers={count}", changed
