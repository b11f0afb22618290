"""How long something takes on the card, which works behind the program's back."""

import time
from collections.abc import Callable

import torch


def seconds_of(call: Callable[[], object], times: int, warm: int = 5) -> float:
    """Return the seconds of one call, after some that don't count."""
    for _ in range(warm):
        call()
    torch.cuda.synchronize()
    began_s = time.perf_counter()
    for _ in range(times):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - began_s) / times
