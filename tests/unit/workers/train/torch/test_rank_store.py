"""Torch takes our store for one of its own: the same answers, and process groups meet there."""

import math
import multiprocessing
import os
import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import torch
from torch.distributed import HashStore, PrefixStore

from jupiterd.errors import MalformedError, TimedOutError
from jupiterd.protocol.frames import StoreVerb
from jupiterd.workers.train.torch import rank_store as rank_store_module
from jupiterd.workers.train.torch.rank_store import (
    GLOO_ASKS_AT_ONCE,
    KEYS_AT_ONCE,
    RankStore,
)
from tests.support.workers.open_store import OpenStore, ask

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


def test_it_answers_what_torchs_own_store_answers_whatever_is_asked(seed):
    dice = random.Random(seed)
    kept = in_process()
    ours, theirs = PrefixStore("p", kept), PrefixStore("p", HashStore())
    verbs = ("set", "add", "compare_set", "delete_key", "num_keys", "get", "check")
    for number in range(400):
        asked = dice.choice(verbs), dice.choice(KEYS), str(dice.randrange(3))
        assert done(ours, *asked) == done(theirs, *asked), (number, asked)


def test_several_keys_are_asked_for_at_once_and_one_by_one_where_the_holder_is_older():
    opened = OpenStore()
    kept = RankStore(lambda verb, keys, values, _: opened.answer(verb, keys, values), TIMEOUT)
    store = PrefixStore("p", kept)
    named = [str(number) for number in range(70)]
    store.multi_set(named, [name.encode() * 3 for name in named])
    asked: list[str] = []

    def older(verb: str, keys: Sequence[str], values: Sequence[bytes], _: float) -> bytes:
        asked.append(verb)
        if verb == StoreVerb.GET_ALL:
            raise MalformedError("a gang's store knows no such question")
        return opened.answer(verb, keys, values)

    for asking in (kept, RankStore(older, TIMEOUT)):
        found = PrefixStore("p", asking).multi_get(named)
        assert [bytes(value) for value in found] == [name.encode() * 3 for name in named]
    assert asked.count("get_all") == math.ceil(70 / KEYS_AT_ONCE)
    assert asked.count("get") == 70


@pytest.mark.net
def test_a_rank_of_gloo_asks_a_few_times_however_many_others_there_are(
    monkeypatch: pytest.MonkeyPatch,
):
    ranks, at_once, opened, asked = 9, 4, OpenStore(), Counter[int]()
    monkeypatch.setenv(GLOO_ASKS_AT_ONCE, "1")
    monkeypatch.setattr(rank_store_module, "KEYS_AT_ONCE", at_once)

    def asking(rank: int) -> RankStore:
        def ask(verb: str, keys: Sequence[str], values: Sequence[bytes], _: float) -> bytes:
            asked[rank] += 1
            return opened.answer(verb, keys, values)

        return RankStore(ask, TIMEOUT)

    def met(rank: int, store: RankStore) -> object:
        options = torch.distributed.ProcessGroupGloo._Options()
        options._timeout, options._threads = TIMEOUT, 1
        options._devices = [torch.distributed.ProcessGroupGloo.create_device(interface="lo")]
        return torch.distributed.ProcessGroupGloo(PrefixStore("p", store), rank, ranks, options)

    stores = [asking(rank) for rank in range(ranks)]
    with ThreadPoolExecutor(ranks) as threads:
        groups = list(threads.map(met, range(ranks), stores))
    assert len(groups) == ranks
    assert set(asked.values()) == {1 + math.ceil(ranks / at_once)}


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
