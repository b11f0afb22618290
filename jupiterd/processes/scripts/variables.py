"""Environment variables that change what a training script does.

Owns the list of their names, and the comparison between machines. Pure. It leaves out whatever may
be a secret: these variables are sent to other machines and shown.
"""

from collections.abc import Collection, Mapping
from typing import Final

from jupiterd.formats import plain

MAX_SHOWN: Final = 60
MAX_VALUE_CHARACTERS: Final = 1024
MAX_SHOWN_CHARS: Final = 128

_NAMES: Final = frozenset({
    "CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES", "DYLD_LIBRARY_PATH",
    "LD_LIBRARY_PATH", "LD_PRELOAD", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONHASHSEED",
    "PYTHONNOUSERSITE", "PYTHONPATH", "TOKENIZERS_PARALLELISM", "WANDB_DISABLED", "WANDB_MODE",
    "WANDB_PROJECT",
})  # fmt: skip
_BEGINNINGS: Final = (
    "ACCELERATE_", "GLOO_", "HF_", "KMP_", "MLX_", "NCCL_", "OMP_", "PYTORCH_", "TORCH_",
    "TORCHINDUCTOR_", "TRANSFORMERS_",
)  # fmt: skip
_SECRET: Final = ("TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL")

_PARALLEL: Final = "TOKENIZERS_PARALLELISM"
"""Its name contains TOKEN, but it is no secret."""


def telling(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that matter and aren't secret."""
    found = {
        name: value[:MAX_VALUE_CHARACTERS]
        for name, value in sorted(environment.items())
        if _matters(name)
    }
    return dict([*found.items()][:MAX_SHOWN_CHARS])


def differences(
    by_machine: Mapping[str, Mapping[str, str]], without: Collection[str] = ()
) -> list[str]:
    """Return a line for each variable that differs between machines, with its values.

    Args:
        by_machine: machine's name -> its variables, from `telling`.
        without: names to leave out, since the launch sets them.
    """
    names = sorted({name for variables in by_machine.values() for name in variables} - set(without))
    lines: list[str] = []
    for name in names:
        if not _matters(name):
            continue
        machines: dict[str | None, list[str]] = {}
        for machine, variables in by_machine.items():
            machines.setdefault(variables.get(name), []).append(machine)
        if len(machines) > 1:
            each = (f"{_shown(value)} on {_joined(on)}" for value, on in machines.items())
            lines.append(f"{plain(name)} differs: {', '.join(each)}")
    return lines


def _matters(name: str) -> bool:
    is_secret = name != _PARALLEL and any(part in name for part in _SECRET)
    return not is_secret and (name in _NAMES or name.startswith(_BEGINNINGS))


def _shown(value: str | None) -> str:
    if value is None:
        return "not set"
    if not value:
        return "empty"
    return plain(value if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]}...")


def _joined(machines: Collection[str]) -> str:
    return " and ".join(map(plain, machines))
