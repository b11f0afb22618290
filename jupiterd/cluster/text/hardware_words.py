"""A machine in a few words.

Pure. Owns the words. Doesn't know how anything is probed.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.formats import MISSING, size


def hardware(record: Mapping[str, Any] | None) -> str:
    """Return a machine in a few words, such as `8 cores, 31.3 GiB, 2 x NVIDIA A100`."""
    if not record:
        return MISSING
    parts = [f"{record.get('cores', '?')} cores", size(record.get("ram_bytes", 0))]
    names = [gpu.get("name", "GPU") for gpu in record.get("gpus", [])]
    parts += [
        f"{names.count(name)} x {name}" if names.count(name) > 1 else name
        for name in dict.fromkeys(names)
    ]
    return ", ".join(parts)
