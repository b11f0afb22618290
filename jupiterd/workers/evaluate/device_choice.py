"""Where a model is asked that nobody waits for: on a GPU that has nothing else to do, or the CPU.

Owns that choice. Training comes first: a GPU whose memory is mostly taken is left alone.
"""

from typing import Final

from jupiterd.errors import UsageError

AUTO, CPU, CUDA = "auto", "cpu", "cuda"

_FREE_SHARE: Final = 0.8


def chosen_device(wanted: str) -> str:
    """Return a device of torch, such as `cuda:1`; auto: the GPU with the most room, if it idles.

    Raises:
        UsageError: a GPU is wanted, and torch finds none.
    """
    import torch

    if wanted not in {AUTO, CPU} and not torch.cuda.is_available():
        raise UsageError(f"torch finds no device {wanted} here", "--device cpu computes without it")
    if wanted == CPU or not torch.cuda.is_available():
        return CPU
    if wanted != AUTO:
        return wanted
    rooms = [(*torch.cuda.mem_get_info(n), n) for n in range(torch.cuda.device_count())]
    free, total, number = max(rooms)
    return f"{CUDA}:{number}" if free >= _FREE_SHARE * total else CPU
