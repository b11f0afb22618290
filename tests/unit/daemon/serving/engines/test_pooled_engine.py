"""The share of the cores that an engine has, from its first request on."""

from contextlib import ExitStack
from pathlib import Path

from jupiterd.cluster.serving.engine_choice import CUDA
from jupiterd.daemon.serving.engines.model_files import ModelFiles
from jupiterd.daemon.serving.engines.pooled_engine import PooledEngine
from jupiterd.processes.thread_shares import ThreadShares

CORES = 8


def engine(threads: ThreadShares) -> PooledEngine:
    return PooledEngine(ModelFiles("key", "tiny", Path(), {}, has_template=False), threads)


def next_share(threads: ThreadShares) -> int:
    """Return with how many threads something would compute that begins now."""
    with threads.seat() as seat:
        return seat.threads


async def test_a_request_that_waits_for_its_engine_takes_no_cores_from_it():
    threads = ThreadShares(lambda: CORES)
    asked = engine(threads)
    with asked.answer():
        assert next_share(threads) == CORES, "the engine is started with so many"
        with asked.computing():
            assert next_share(threads) == CORES // 2
    assert next_share(threads) == CORES


async def test_many_answers_of_one_engine_have_one_share_until_the_last_one_ends():
    threads = ThreadShares(lambda: CORES)
    asked, first, second = engine(threads), ExitStack(), ExitStack()
    first.enter_context(asked.computing())
    second.enter_context(asked.computing())
    assert next_share(threads) == CORES // 2
    first.close()
    assert next_share(threads) == CORES // 2
    second.close()
    assert next_share(threads) == CORES


async def test_answers_that_a_gpu_writes_take_no_cores():
    threads = ThreadShares(lambda: CORES)
    asked = engine(threads)
    asked.device = CUDA
    with asked.answer(), asked.computing():
        assert next_share(threads) == CORES
