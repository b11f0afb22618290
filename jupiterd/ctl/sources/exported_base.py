"""What an export of an adapter alone says of its base, and of itself, in its card and its record.

Owns both. Doesn't know how a card is written, nor where a base is looked for.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.adapter_folder import adapter_file, base_beside, base_named_in, said_in
from jupiterd.ctl.sources.adapter_base import RecordedBase, recorded_base, weights_hash
from jupiterd.cycle.training.adapters.adapter import AdapterOptions, parse_adapter
from jupiterd.cycle.training.adapters.adapter_files import read_adapter
from jupiterd.errors import UsageError
from jupiterd.weights_header import header


@dataclass(frozen=True)
class AdapterFacts:
    """What a card says of an adapter."""

    base: RecordedBase
    options: AdapterOptions | None
    """None: its files say something that isn't known here."""
    parameters: int
    quantized: str
    """In how many bits its base was kept while it was trained; empty: nobody knows."""

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Return what it is, each with its value."""
        said = self.options
        if said is None:
            return []
        kind = "DoRA" if said.dora else "LoRA"
        scaled = ", divided by the root of the rank" if said.form == "rslora" else ""
        bits = {"none": "as it is", "": "unknown"}.get(self.quantized, self.quantized)
        return [
            ("form", kind),
            ("rank", str(said.rank)),
            ("alpha", f"{said.alpha:g}{scaled}"),
            ("dropout", f"{said.dropout:g}"),
            ("layers", said.numbers or "all"),
            ("targets", said.targets.replace("+", ", ")),
            ("numbers that were trained", f"{self.parameters:,}"),
            ("base while it was trained", bits),
        ]


def exported_base(model: Mapping[str, Any], stored: Path, folder: str) -> RecordedBase | None:
    """Return the base of an adapter that is exported, all its weights read; None: it is whole.

    Args:
        model: the daemon's document of it.
        stored: the folder of both.
        folder: the name of the one that is written.

    Raises:
        BrokenModelError: the base can't be read.
    """
    if (base := base_beside(stored)) is None:
        return None
    began_with = model.get("began_with") or {}
    said = recorded_base(stored)
    name = str(began_with.get("name") or said.name or base_named_in(stored))
    named = f"{name}-base" if name == folder else name  # both lie side by side
    return RecordedBase(named, str(began_with.get("id") or said.id), weights_hash(base))


def adapter_facts(
    model: Mapping[str, Any], stored: Path, base: RecordedBase | None
) -> AdapterFacts | None:
    """Return what an adapter's files say; None: it is a whole model."""
    if base is None:
        return None
    tensors = header(adapter_file(stored))
    shapes = {name: tuple(said["shape"]) for name, said in tensors.items()}
    try:
        options = read_adapter(said_in(stored) or {}, shapes).options
    except UsageError:
        options = None
    count = sum(math.prod(shape) for shape in shapes.values())
    return AdapterFacts(base, options, count, _quantized(model))


def _quantized(model: Mapping[str, Any]) -> str:
    """Return in how many bits the base was kept, of an adapter that was trained here."""
    asked = (model.get("adapter") or {}).get("options")
    try:
        return parse_adapter(str(asked)).quantize if asked else ""
    except UsageError:  # of another version
        return ""
