"""Work that is done at least once and whose results are kept exactly once."""

import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.errors import DiskFullError
from jupiterd.workers.__main__ import translate
from jupiterd.workers.data.collect.work_queue import WorkQueue


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(tmp_path, clock):
    with WorkQueue(tmp_path / "queue.db", lease_s=10.0, clock=clock) as opened:
        yield opened


def keys(items):
    return [item.key for item in items]


def put(queue, *names):
    queue.put([(name, name.encode()) for name in names])


def test_items_come_in_the_order_in_which_they_were_put(queue):
    put(queue, "b", "a", "c")
    assert keys(queue.lease(2)) == ["b", "a"]
    assert keys(queue.lease(2)) == ["c"]
    assert queue.lease(2) == []


def test_an_item_put_twice_is_done_once(queue):
    put(queue, "a", "a")
    queue.finish([("a", b"1")])
    put(queue, "a")
    assert queue.lease(1) == []
    assert queue.counts() == (1, 1)
    put(queue, "a", "b", "b", "c")
    assert queue.size() == queue.counts()[0] == 3


def test_a_lease_that_has_run_out_is_somebody_elses_and_counts_as_a_try(queue, clock):
    put(queue, "a")
    assert queue.lease(1)[0].tries == 1
    clock.now_s += 9.9
    assert queue.lease(1) == []
    clock.now_s += 0.2
    assert queue.lease(1)[0].tries == 2


def test_a_lease_from_before_the_machine_was_started_is_none(queue, clock):
    put(queue, "a")
    queue.lease(1)
    clock.now_s = 3.0
    assert keys(queue.lease(1)) == ["a"]


def test_the_first_result_counts_and_a_late_one_is_thrown_away(queue, clock):
    put(queue, "a")
    queue.lease(1)
    clock.now_s += 11
    queue.lease(1)
    queue.finish([("a", b"second")], [("b", b"")])
    queue.finish([("a", b"first, late")], [("b", b"other")])
    assert list(queue.results()) == [("a", b"second")]
    assert [(item.key, item.payload) for item in queue.lease(9)] == [("b", b"")]


def test_what_follows_from_a_result_is_kept_with_it_or_not_at_all(queue):
    put(queue, "a")

    def broken():
        yield "b", b""
        raise RuntimeError

    with pytest.raises(RuntimeError):
        queue.finish([("a", b"1")], broken())
    assert queue.result("a") is None
    assert queue.counts() == (1, 0)


def test_items_given_back_are_there_at_once_and_were_not_tried(queue):
    put(queue, "a", "b")
    queue.lease(2)
    queue.give_back(["b"])
    (item,) = queue.lease(2)
    assert (item.key, item.tries) == ("b", 1)


def test_release_gives_back_what_the_dead_had_leased(queue):
    put(queue, "a", "b")
    queue.lease(2)
    queue.finish([("a", b"1")])
    queue.release()
    (item,) = queue.lease(2)
    assert (item.key, item.tries) == ("b", 2)


def test_an_item_may_be_taken_by_its_key(queue):
    put(queue, "a", "b")
    assert (queue.take("b").tries, queue.take("b").tries, queue.take("c").tries) == (1, 2, 1)
    assert keys(queue.lease(9)) == ["a"]


def test_items_leased_and_not_begun_are_not_tried(queue):
    put(queue, "a", "b")
    assert [item.tries for item in queue.lease(2, is_begun=False)] == [0, 0]
    assert queue.take("a").tries == 1
    queue.release()
    assert [item.tries for item in queue.lease(2)] == [2, 1]


def test_a_full_disk_is_told_as_such_and_nothing_is_lost(queue):
    put(queue, "a")
    pages = queue._database.execute("PRAGMA page_count").fetchone()[0]
    queue._database.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(sqlite3.OperationalError) as caught:
        queue.put([(f"large-{number}", bytes(4000)) for number in range(100)])
    assert isinstance(translate(caught.value, "collect"), DiskFullError)
    queue._database.execute("PRAGMA max_page_count = 1000000")
    assert keys(queue.lease(9)) == ["a"]


@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(0, 20)),
            st.tuples(st.just("lease"), st.integers(1, 5)),
            st.tuples(st.just("finish"), st.integers(0, 20)),
            st.tuples(st.just("give back"), st.integers(0, 20)),
            st.tuples(st.just("wait"), st.integers(1, 15)),
            st.tuples(st.just("reopen"), st.just(0)),
        ),
        max_size=60,
    )
)
def test_whatever_happens_no_item_is_lost_or_leased_to_two(steps, tmp_path_factory):
    clock = Clock()
    path = tmp_path_factory.mktemp("queue") / "queue.db"
    queue = WorkQueue(path, lease_s=10.0, clock=clock)
    put_keys: set[str] = set()
    leased: dict[str, float] = {}
    results: dict[str, bytes] = {}
    for number, (step, value) in enumerate(steps):
        key = str(value)
        match step:
            case "put":
                put(queue, key)
                put_keys.add(key)
            case "lease":
                for item in queue.lease(value):
                    assert item.key not in results
                    assert clock.now_s - leased.get(item.key, -99) >= 10.0
                    leased[item.key] = clock.now_s
            case "finish" if key in put_keys:
                queue.finish([(key, b"%d" % number)])
                results.setdefault(key, b"%d" % number)
            case "give back" if key in leased and key not in results:
                queue.give_back([key])
                del leased[key]
            case "wait":
                clock.now_s += value
            case "reopen":
                queue._database.close()
                queue = WorkQueue(path, lease_s=10.0, clock=clock)
            case _:
                pass
    assert dict(queue.results()) == results
    clock.now_s += 11
    assert set(keys(queue.lease(99))) == put_keys - results.keys()
    queue._database.close()


WORKER = """
import sys
from pathlib import Path
from jupiterd.workers.data.collect.work_queue import WorkQueue

queue = WorkQueue(Path(sys.argv[1]), lease_s=0.05)
log = open(sys.argv[2], "ab", buffering=0)
while True:
    items = queue.lease(4)
    total, done = queue.counts()
    if done == total:
        break
    for item in items:
        log.write(item.key.encode() + b"\\n")
        number = int(item.key)
        more = [(str(n), b"") for n in (2 * number, 2 * number + 1) if n < LIMIT]
        queue.finish([(item.key, b"result of " + item.key.encode())], more)
"""


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random_moments_every_result_is_there_exactly_once(tmp_path, seed):
    """Workers are ended by SIGKILL again and again; a tree of items grows out of the first one."""
    chance = random.Random(seed)
    path, log, limit, kills = tmp_path / "queue.db", tmp_path / "log", 1500, 12
    with WorkQueue(path) as queue:
        queue.put([("1", b"")])
    program = WORKER.replace("LIMIT", str(limit))
    command = [sys.executable, "-c", program, str(path), str(log)]
    for _ in range(kills):
        workers = [subprocess.Popen(command) for _ in range(2)]
        victim = chance.choice(workers)
        # It may not have opened the file yet, or be deep in its work.
        with contextlib.suppress(subprocess.TimeoutExpired):
            victim.wait(chance.uniform(0.05, 0.25))
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
            worker.wait()
    subprocess.run(command, check=True, timeout=50)
    with WorkQueue(path) as queue:
        found = dict(queue.results())
        assert queue.counts() == (limit - 1, limit - 1)
    assert found == {str(n): f"result of {n}".encode() for n in range(1, limit)}, f"seed {seed}"
    assert len(log.read_bytes().split()) >= limit - 1  # at least once


def test_the_file_is_a_whole_database_after_a_kill_in_mid_write(tmp_path):
    path = tmp_path / "queue.db"
    program = (
        "import sys; from pathlib import Path\n"
        "from jupiterd.workers.data.collect.work_queue import WorkQueue\n"
        "queue = WorkQueue(Path(sys.argv[1])); print('open', flush=True)\n"
        "for n in range(10**9): queue.put([(f'{n}-{k}', bytes(500)) for k in range(50)])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE
    ) as worker:
        worker.stdout.readline()
        while not Path(f"{path}-wal").exists() or Path(f"{path}-wal").stat().st_size < 1 << 20:
            pass
        worker.kill()
    with WorkQueue(path) as queue:
        total, _ = queue.counts()
    assert total % 50 == 0
    assert total
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
