"""Ranks of a torch gang in processes of their own, each of which calls one function.

Owns starting them and their meeting over gloo. They are forked from a process that has imported
torch and has computed nothing yet. Doesn't know what the ranks do.
"""

import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, TypeVar

import torch

from jupiterd.workers.train.torch.process_group import ProcessGroup

TIMEOUT_S = 60.0
LOOPBACK = "lo"
PRELOADED = (
    "jupiterd.workers.train.torch.torch_rank",
    "tests.support.workers.cut.cut_models",
    "torch.utils.checkpoint",
    "transformers.models.llama.modeling_llama",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.models.qwen3.configuration_qwen3",
)
"""Modules that every rank would import on its own otherwise."""

T = TypeVar("T")


def on_ranks(ranks: int, work: Callable[..., T], *given: Any) -> list[T]:
    """Return what `work(group, *given)` returns on each rank; it stands in a module."""
    with tempfile.TemporaryDirectory(prefix="jupiter-ranks-") as folder:
        started = [
            _started(rank, ranks, Path(folder) / "meeting", work, given) for rank in range(ranks)
        ]
        found = [_told(end) for _, end in started]
        for process, _ in started:
            process.join()
    errors = [error for _, error in found if error]
    assert not errors, "\n".join(errors)
    return [value for value, _ in found]


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *PRELOADED])
    return context


def _started(
    rank: int, ranks: int, meeting: Path, work: Callable[..., Any], given: Sequence[Any]
) -> tuple[Any, Connection]:
    ours, theirs = _context().Pipe(duplex=False)
    process = _context().Process(target=_run, args=(theirs, rank, ranks, meeting, work, given))
    process.start()
    theirs.close()
    return process, ours


def _told(end: Connection) -> tuple[Any, str]:
    try:
        return end.recv()
    except EOFError:
        return None, "a rank has ended without a word"


def _run(
    end: Connection,
    rank: int,
    ranks: int,
    meeting: Path,
    work: Callable[..., Any],
    given: Sequence[Any],
) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = LOOPBACK
    try:
        if ranks > 1:
            torch.distributed.init_process_group(
                "gloo",
                init_method=f"file://{meeting}",
                rank=rank,
                world_size=ranks,
                timeout=timedelta(seconds=TIMEOUT_S),
            )
        end.send((work(ProcessGroup(rank, ranks), *given), ""))
    except BaseException:  # noqa: BLE001 - whatever it is, the test is told
        end.send((None, traceback.format_exc()))
    end.close()
    os._exit(0)  # gloo's threads may hold Python's lock at an ordinary end
