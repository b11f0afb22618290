"""Which gangs train adapters beside quantized weights, and what they take.

Owns those rules, and what is told to those whose adapter doesn't fit. Pure. A run has one kind of
bits: engines quantize differently, so an adapter that learned beside the one's errors wouldn't fit
the other's. So gangs of both engines are refused.
"""

from collections.abc import Collection, Iterator, Sequence

from jupiterd.cycle.training.adapters.adapter import AdapterOptions, layer_ranges, layers_in
from jupiterd.errors import MissingExtraError, UsageError
from jupiterd.versions import INSTALL_QUANTIZED


def check_quantized(
    engines: Collection[str], adapter: AdapterOptions | None, lacking: Sequence[str] = ()
) -> None:
    """Make sure that all who are to train can keep frozen weights in as few bits as asked.

    Args:
        engines: that the run is to be trained on, by any of its islands.
        adapter: which may ask for it.
        lacking: names of the nodes that would train on torch and have no bitsandbytes.

    Raises:
        UsageError: both engines are to train it.
        MissingExtraError: a node lacks what it takes.
    """
    if adapter is None or not adapter.bits:
        return
    asked = f"--quantize {adapter.quantize}"
    if len(set(engines)) > 1:
        raise UsageError(
            f"{asked}: MLX and torch quantize differently, so islands of both would train beside "
            "different weights",
            "--engine torch or --engine mlx, or leave --quantize out",
        )
    if lacking:
        raise no_bitsandbytes(asked, lacking)


def no_bitsandbytes(
    asked: str = "--quantize", nodes: Sequence[str] = ("this machine",)
) -> MissingExtraError:
    """Return what is told where torch can't quantize, and what to install where."""
    names, lack = ", ".join(nodes), "lacks" if len(nodes) == 1 else "lack"
    return MissingExtraError(
        f"{asked}: {names} {lack} bitsandbytes, by which torch quantizes",
        f"{INSTALL_QUANTIZED} there, and start jupiterd again; or --engine mlx, or leave "
        "--quantize out",
    )


def smaller_adapters(
    adapter: AdapterOptions | None, layers: int
) -> Iterator[tuple[str, AdapterOptions]]:
    """Yield options that need less memory, as people say them, the least change first."""
    if adapter is None:
        return
    fewer = [*_with_fewer_layers(adapter, layers)]
    yield from ((f"--lora with layers={said}", less) for said, less in fewer)
    if adapter.bits == 4:
        return
    quantized = adapter.model_copy(update={"quantize": "4bit"})
    yield "--quantize 4bit", quantized
    for said, less in fewer:
        changed = less.model_copy(update={"quantize": "4bit"})
        yield f"--quantize 4bit, and --lora with layers={said}", changed


def _with_fewer_layers(
    adapter: AdapterOptions, layers: int
) -> Iterator[tuple[str, AdapterOptions]]:
    """Yield an adapter of half as many layers, and of a quarter, with what says so: the last."""
    if adapter.numbers:
        chosen = layers_in(adapter.numbers)
        for count in filter(None, (len(chosen) // 2, len(chosen) // 4)):
            said = layer_ranges(chosen[-count:])
            yield said, adapter.model_copy(update={"numbers": said})
        return
    wanted = adapter.layers or layers
    for count in filter(None, (wanted // 2, wanted // 4)):
        yield str(count), adapter.model_copy(update={"layers": count})
