"""Meeting over NCCL, and the proof that it works: a first sum, within a time limit.

Owns that proof and what a failure becomes. Doesn't know who chose NCCL, or what comes instead.

NCCL may hang instead of failing: where a firewall lets some of its connections through, in WSL, or
where two devices claim a direct way between them that they don't have. A hung call can't be
interrupted, so it is a timer that gives up, and the process ends.
"""

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch

from jupiterd.errors import NcclFailedError

NCCL: Final = "nccl"
GLOO: Final = "gloo"

FIRST_SUM_TIMEOUT_S = 45.0
"""For connecting and the first sum, once all ranks are there: seconds where all is well."""

_LAST_ERROR: Final = "Last error:"
"""What stands before it in torch's messages (c10d, NCCLUtils)."""

GiveUp = Callable[[NcclFailedError], None]


def meet_over_nccl(
    meeting: Mapping[str, Any],
    device: str,
    give_up: GiveUp,
    timeout_s: float = FIRST_SUM_TIMEOUT_S,
) -> None:
    """Meet the other ranks, and sum once with them.

    meeting: what `init_process_group` is told beside the backend and the device
    give_up: ends the process; called from another thread where the time is over

    Raises:
        NcclFailedError: it has failed by itself, or the sum is wrong.
    """
    rank, world_size = int(meeting["rank"]), int(meeting["world_size"])
    _wait_for_all(meeting["store"], rank, world_size)
    with _giving_up(
        f"rank {rank} couldn't sum over NCCL within {timeout_s:g} s", give_up, timeout_s
    ):
        try:
            torch.distributed.init_process_group(
                NCCL, device_id=torch.device(device), **dict(meeting)
            )
            found = _first_sum(device)
        except (RuntimeError, ValueError) as error:  # torch's own errors are RuntimeErrors
            raise NcclFailedError(f"rank {rank} has no NCCL: {_in_one_line(error)}") from error
    if found != world_size:
        raise NcclFailedError(f"rank {rank} summed {world_size} ones over NCCL, and got {found:g}")


def _wait_for_all(store: Any, rank: int, world_size: int) -> None:  # noqa: ANN401 - torch's Store
    """Wait until all ranks have come to the store: a slow start is no failure of NCCL."""
    store.set(f"here/{rank}", "")
    store.wait([f"here/{other}" for other in range(world_size)])


def _first_sum(device: str) -> float:
    one = torch.ones(1, device=device)
    torch.distributed.all_reduce(one)
    return float(one)


@contextmanager
def _giving_up(message: str, give_up: GiveUp, timeout_s: float) -> Generator[None]:
    timer = threading.Timer(timeout_s, give_up, [NcclFailedError(message)])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _in_one_line(error: Exception) -> str:
    """Return what happened: NCCL's own last error where torch tells it, else the first line.

    Two ranks on one GPU, say: `Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b`.
    """
    text = str(error)
    _, _, own = text.partition(_LAST_ERROR)
    lines = [line.strip() for line in (own.splitlines() or text.splitlines()) if line.strip()]
    return next(iter(lines), _first_line(text) or type(error).__name__)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
