"""Torch takes our store for one of its own: the same answers, and process groups meet there."""

import multiprocessing
import os
import random
from datetime import timedelta
from typing import Any

import pytest
import torch
from torch.distributed import HashStore, PrefixStore

from jupiterd.errors import TimedOutError
from jupiterd.workers.train.torch.rank_store import RankStore
from tests.unit.workers.open_store import OpenStore, ask

TIMEOUT = timedelta(seconds=30)
KEYS = ("a", "b", "c")


def rank_store(address: str) -> RankStore:
    return RankStore(lambda verb, keys, values, _: ask(address, verb, keys, values), TIMEOUT)


def in_process() -> RankStore:
    opened = OpenStore()
    return RankStore(lambda verb, keys, values, _: opened.answer(verb, keys, values), TIMEOUT)


def done(store: Any, what: str, key: str, number: str) -> Any:
    """Do something that any store can, and return what comes of it."""
    match what:
        case "set":
            return store.set(key, number)
        case "add":
            return store.add(key, int(number))
        case "compare_set":
            return store.compare_set(key, number, str(int(number) + 1))
        case "delete_key":
            return store.delete_key(key)
        case "num_keys":
            return store.num_keys()
        case "get" if store.check([key]):
            return store.get(key)
        case _:
            return store.check([key])


def test_it_answers_what_torchs_own_store_answers_whatever_is_asked():
    seed = random.randrange(1 << 32)
    print("seed", seed)
    dice = random.Random(seed)
    kept = in_process()
    ours, theirs = PrefixStore("p", kept), PrefixStore("p", HashStore())
    verbs = ("set", "add", "compare_set", "delete_key", "num_keys", "get", "check")
    for number in range(400):
        asked = dice.choice(verbs), dice.choice(KEYS), str(dice.randrange(3))
        assert done(ours, *asked) == done(theirs, *asked), (number, asked)


def test_an_error_comes_through_torch_as_it_was():
    def late(*_: object) -> bytes:
        raise TimedOutError("rank 1 hasn't come")

    kept = RankStore(late, TIMEOUT)
    with pytest.raises(TimedOutError, match="rank 1 hasn't come"):
        PrefixStore("p", kept).get("1")


def test_it_is_asked_for_as_long_as_torch_says():
    limits: list[float] = []

    def noting(_verb: str, _keys: object, _values: object, within_s: float) -> bytes:
        limits.append(within_s)
        return b"1"

    kept = RankStore(noting, TIMEOUT)
    store = PrefixStore("p", kept)
    store.wait(["a"])
    store.wait(["a"], timedelta(seconds=3))
    store.set_timeout(timedelta(seconds=7))
    store.clone().get("a")
    assert limits == [30.0, 3.0, 7.0]


def _meet(rank: int, address: str, sums: Any) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = rank_store(address)
    meeting: dict[str, Any] = {"store": store, "rank": rank, "world_size": 2, "timeout": TIMEOUT}
    torch.distributed.init_process_group("gloo", **meeting)
    one = torch.ones(1)
    torch.distributed.all_reduce(one)
    sums[rank] = one.item()
    os._exit(0)


@pytest.mark.net
def test_two_processes_meet_there_over_gloo():
    address, sums = OpenStore().serve(), multiprocessing.Array("d", 2)
    spawn = multiprocessing.get_context("fork")
    ranks = [spawn.Process(target=_meet, args=(rank, address, sums)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(30)
    assert list(sums) == [2.0, 2.0]
