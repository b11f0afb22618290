"""The variables for NCCL, gloo and CUDA that people give the ranks of one machine.

Owns which names may be given, and reading them from settings. Pure. Doesn't know when a library
reads them, or what else a rank's environment has.
"""

import re
from collections.abc import Mapping
from typing import Final, cast

PREFIXES: Final = ("NCCL_", "GLOO_", "CUDA_")
"""What a name that may be given begins with."""

_NAME: Final = re.compile(rf"(?:{'|'.join(PREFIXES)})[A-Z0-9_]{{1,64}}")
_MAX_CHARACTERS: Final = 1024

_SET_ELSEWHERE: Final = {
    "CUDA_VISIBLE_DEVICES": "`devices` says where ranks compute, or jupiterd's own environment",
    "CUDA_DEVICE_ORDER": "devices have the numbers of nvidia-smi",
}
"""Names that would make a rank compute elsewhere than its daemon thinks, and what there is."""

_EXAMPLE: Final = "{NCCL_IB_HCA: mlx5_0, NCCL_P2P_DISABLE: 1}"


def read_rank_variables(document: object) -> Mapping[str, str]:
    """Read a mapping, or NAME=VALUE,... as an environment variable holds it.

    Raises:
        ValueError: it is none, or a name or a value can't be given.
    """
    if isinstance(document, str):
        parts = [part for part in document.split(",") if part.strip()]
        return dict(_checked(*part.strip().partition("=")[::2]) for part in parts)
    if isinstance(document, Mapping):
        given = cast("Mapping[object, object]", document)
        return dict(_checked(str(name), value) for name, value in given.items())
    raise ValueError(f"expected variables, such as {_EXAMPLE}, got {document!r}")


def is_rank_variable(name: str) -> bool:
    """Return whether people may give ranks a variable of that name."""
    return _NAME.fullmatch(name) is not None and name not in _SET_ELSEWHERE


def _checked(name: str, value: object) -> tuple[str, str]:
    if name in _SET_ELSEWHERE:
        raise ValueError(f"{name} isn't given to ranks so: {_SET_ELSEWHERE[name]}")
    if not is_rank_variable(name):
        allowed = ", ".join(f"{prefix}*" for prefix in PREFIXES)
        raise ValueError(f"expected names of {allowed}, such as {_EXAMPLE}, got {name[:80]!r}")
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not text or len(text) > _MAX_CHARACTERS or not text.isprintable():
        raise ValueError(f"expected text or a whole number for {name}, got {str(value)[:80]!r}")
    return name, text
