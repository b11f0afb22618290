"""The ranks of an MLX ring, as its engine sees them.

Owns meeting the others, and every collective with its time limit. Doesn't know models. A ring of
one meets nobody and shares nothing.

The ring has no handshake and no time limits of its own: whoever connects first is taken for the
left neighbour, collectives of different shapes return wrong numbers, and a neighbour that went
silent is waited for without end. So its ports are used once, the ranks compare what they mean
before they train, and a process that waits too long ends itself. After an error the ring is dead
for this process; the gang begins again with new ones.
"""

import faulthandler
import json
import os
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from blake3 import blake3
from mlx.nn.utils import average_gradients

from jupiterd.errors import WorkFailedError
from jupiterd.protocol.frames import ConnectionsRefused, TaskFailed
from jupiterd.workers.link import Task
from jupiterd.workers.train.rank_listener_filter import ring_closed_to_strangers

FORMING_TIMEOUT_S = 45.0
"""After this a rank that is still forming its ring ends itself; the daemon mostly comes first.

A rank dials for 31 s, and listens for ever.
"""

WAIT_TIMEOUT_S = 60.0
"""How long a rank waits for the others in a step."""

PLACEHOLDER = "198.51.100.1:1"
"""Stands for ranks that are no neighbours: an address that never exists."""

HOSTFILE = "ring.json"

EXIT_STATUS = 1


class Ring:
    """This rank and its peers."""

    def __init__(self, rank: int, world_size: int, task: Task | None = None) -> None:
        self.rank = rank
        self.world_size = world_size
        self._task = task
        self._group: Any = None
        self._sending: Any = None
        self._receiving: Any = None

    def form(self, addresses: Sequence[str], folder: Path, members: Sequence[str] = ()) -> None:
        """Meet the neighbours; blocks the whole process, Python's lock included.

        members: the addresses of all machines of the ring; nobody else gets in. None: whoever likes

        Raises:
            WorkFailedError: a neighbour wasn't there in time, the port was taken, or a stranger
                took a neighbour's place.
        """
        path = folder / HOSTFILE
        write_hostfile(path, addresses, self.rank)
        os.environ["MLX_RANK"] = str(self.rank)
        os.environ["MLX_HOSTFILE"] = str(path)
        faulthandler.dump_traceback_later(FORMING_TIMEOUT_S, exit=True)
        try:
            with ring_closed_to_strangers(addresses[self.rank], members, self._send) as held:
                self._tell_port(addresses, held)
                self._group = mx.distributed.init(backend="ring", strict=True)
        except RuntimeError as error:
            raise WorkFailedError(f"rank {self.rank} couldn't form its ring: {error}") from error
        finally:
            faulthandler.cancel_dump_traceback_later()
        self._sending, self._receiving = mx.new_stream(mx.cpu), mx.new_stream(mx.cpu)
        if (self._group.rank(), self._group.size()) != (self.rank, self.world_size):
            raise WorkFailedError(f"rank {self.rank} found itself in another ring")

    def _tell_port(self, addresses: Sequence[str], held: int) -> None:
        """Say where this rank is about to listen; the last one dials first, once others do."""
        if self._task is not None and self.rank < self.world_size - 1:
            self._task.listens(int(addresses[self.rank].rpartition(":")[2]), held)

    def _send(self, frame: ConnectionsRefused) -> None:
        if self._task is not None:
            self._task.send(frame)

    def is_same(self, value: bytes, what: str) -> bool:
        """Say whether all ranks call this with the same value."""
        if self._group is None:
            return True
        mine = np.frombuffer(blake3(value).digest(8), dtype=np.uint16).astype(np.int32)
        with self._waiting(what):
            sent = mx.array(mine)[None]
            everybodys = mx.distributed.all_gather(sent, group=self._group, stream=mx.cpu)
            mx.eval(everybodys)
        return bool(mx.all(everybodys == sent).item())

    def share_first(self, values: Mapping[str, mx.array]) -> dict[str, mx.array]:
        """Return rank 0's values, on every rank."""
        if self._group is None:
            return dict(values)
        shared: dict[str, mx.array] = {}
        for name, value in values.items():
            mine = value if self.rank == 0 else mx.zeros_like(value)
            with self._waiting("takes the first weights"):
                shared[name] = mx.distributed.all_sum(mine, group=self._group, stream=mx.cpu)
                mx.eval(shared[name])
        return shared

    def average(self, gradients: Any) -> Any:  # noqa: ANN401 - a tree of arrays
        """Return the mean of all ranks' gradients.

        They must have been computed already: a collective that waits for a slow neighbour holds up
        whatever else is evaluated with it, and a GPU's driver doesn't wait long.
        """
        if self._group is None:
            return gradients
        with self._waiting("shares its gradients"):
            stream: Any = mx.cpu  # declared as a stream, and a device will do
            shared = average_gradients(gradients, self._group, communication_stream=stream)
            mx.eval(shared)
        return shared

    def gather(self, values: Sequence[float]) -> Sequence[Sequence[float]]:
        """Return what each rank has given, the same on all of them; as float32."""
        if self._group is None:
            return [list(values)]
        with self._waiting("ends a step"):
            mine = mx.array(list(values), dtype=mx.float32)[None]
            rows = mx.distributed.all_gather(mine, group=self._group, stream=mx.cpu)
            mx.eval(rows)
        return np.array(rows).tolist()

    def pass_on(self, numbers: mx.array, expected: int) -> mx.array:
        """Send numbers to the right neighbour, and return those that the left one sends.

        Both at once, or long messages would wait for each other. Either may be none.

        numbers: float32[any], computed already; expected: how many come, as all ranks know
        """
        left, right = (self.rank - 1) % self.world_size, (self.rank + 1) % self.world_size
        group, moved = self._group, list[mx.array]()
        received = mx.zeros((0,))
        if numbers.size:
            moved.append(mx.distributed.send(numbers, right, group=group, stream=self._sending))
        if expected:
            received = mx.distributed.recv(
                (expected,), mx.float32, left, group=group, stream=self._receiving
            )
            moved.append(received)
        with self._waiting("exchanges its part of the model"):
            mx.eval(moved)
        return received

    @contextmanager
    def _waiting(self, what: str) -> Generator[None]:
        """Around one collective: what goes wrong in it is the ring's end, and so is silence."""
        timer = threading.Timer(WAIT_TIMEOUT_S, self._give_up, [what])
        timer.daemon = True
        timer.start()
        try:
            yield
        except RuntimeError as error:
            raise WorkFailedError(f"rank {self.rank} lost its ring: {error}") from error
        finally:
            timer.cancel()

    def _give_up(self, what: str) -> None:
        message = f"rank {self.rank} {what} and has heard nothing for {WAIT_TIMEOUT_S:g} s"
        if self._task is not None:
            self._task.send(TaskFailed(WorkFailedError.code, message, WorkFailedError.default_hint))
        os._exit(EXIT_STATUS)


def write_hostfile(path: Path, addresses: Sequence[str], rank: int) -> None:
    """Write what MLX reads of the ring: our own entry, our right neighbour's, and their number.

    addresses: host:port of each rank, in their order
    """
    neighbours = {rank, (rank + 1) % len(addresses)}
    entries = [
        [address if number in neighbours else PLACEHOLDER]
        for number, address in enumerate(addresses)
    ]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(entries, file)
