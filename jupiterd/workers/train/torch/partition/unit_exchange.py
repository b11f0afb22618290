"""What ranks send each other of a unit: gradients to their owners, and weights to all.

Owns the messages, by `torch.distributed`, and how long they were waited for. Doesn't know models.
Stretches are uneven, so each goes from one rank to another in a message of its own. All ranks must
exchange the same units in the same order.
"""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
import torch.distributed
from numpy.typing import NDArray
from torch import Tensor
from torch.distributed import P2POp, Work

from jupiterd.workers.train.torch.process_group import ProcessGroup


class Transfer:
    """Messages on their way."""

    def __init__(self, works: Sequence[Work], waited: Callable[[float], None]) -> None:
        self._works = works
        self._waited = waited

    def wait(self) -> None:
        """Return when all have arrived; on a GPU, when what follows there comes after them."""
        began_s = time.perf_counter()
        for work in self._works:
            work.wait()
        self._waited(time.perf_counter() - began_s)


class Summing:
    """One rank's stretch of a unit on its way from all ranks, to be added up."""

    def __init__(self, transfer: Transfer, parts: Sequence[Tensor], room: Tensor) -> None:
        """parts: the stretch of each rank, in their order; room: what those of others lie in."""
        self._transfer = transfer
        self._parts = parts
        self.room = room

    def total(self) -> Tensor:
        """Return the sum, added up in the order of the ranks, in the place of the first part."""
        self._transfer.wait()
        first, *others = self._parts
        for other in others:
            first.add_(other)
        return first


class UnitExchange:
    """The messages of one rank."""

    def __init__(self, group: ProcessGroup) -> None:
        self._rank, ranks = group.rank, group.world_size
        self._peers = [(group.rank + step) % ranks for step in range(1, ranks)]
        """In another order on each rank, so that not all send to the same one first."""
        self._rooms: list[Tensor] = []
        self.waited_s = 0.0
        """How long messages were waited for so far, on the host."""
        self.sent_bytes = 0

    def gather(self, bounds: Sequence[int], whole: Tensor, own: Tensor) -> Transfer:
        """Send our stretch of a unit to all, and let theirs come into `whole`.

        bounds: where each rank's stretch begins and the last ends; whole: [unit], of any kind
        """
        sent = [(peer, own) for peer in self._peers]
        received = [(peer, whole[slice(*bounds[peer : peer + 2])]) for peer in self._peers]
        return self._begin(sent, received)

    def gathered(
        self, bounds: Sequence[int], own: NDArray[np.float32], device: str
    ) -> NDArray[np.float32]:
        """Return the numbers of all ranks, one rank's behind the other's; raises what sending does.

        own: this rank's, in the machine's memory; device: where numbers are sent from
        """
        whole = torch.empty(bounds[-1], device=device)
        mine = whole[bounds[self._rank] : bounds[self._rank + 1]]
        mine.copy_(torch.from_numpy(own))
        self.gather(bounds, whole, mine).wait()
        return whole.cpu().numpy()

    def sum_up(self, bounds: Sequence[int], whole: Tensor) -> Summing:
        """Send each rank its stretch of a unit, and let ours come from all.

        whole: float32[unit], must stay as it is until the sum is there
        """
        stretches = [whole[start:end] for start, end in pairwise(bounds)]
        own = stretches[self._rank]
        size = len(own) * len(self._peers)
        room = self._room(size, whole.device)
        rows = dict(zip(self._peers, room[:size].view(len(self._peers), len(own)), strict=True))
        sent = [(peer, stretches[peer]) for peer in self._peers]
        parts = [own if peer == self._rank else rows[peer] for peer in range(len(stretches))]
        return Summing(self._begin(sent, list(rows.items())), parts, room)

    def give_back(self, summing: Summing) -> None:
        """Use the memory of a sum that was looked at again."""
        self._rooms.append(summing.room)

    def _room(self, numbers: int, device: torch.device) -> Tensor:
        """Return memory that nobody uses: the least that is large enough."""
        fitting = [place for place, room in enumerate(self._rooms) if len(room) >= numbers]
        if fitting:
            return self._rooms.pop(min(fitting, key=lambda place: len(self._rooms[place])))
        return torch.empty(numbers, device=device)

    def _begin(
        self, sent: Sequence[tuple[int, Tensor]], received: Sequence[tuple[int, Tensor]]
    ) -> Transfer:
        """Begin to send and to receive; of what is empty neither rank of a pair knows."""
        messages = [P2POp(torch.distributed.isend, t, peer) for peer, t in sent if len(t)]
        self.sent_bytes += sum(tensor.nbytes for _, tensor in sent)
        messages += [P2POp(torch.distributed.irecv, t, peer) for peer, t in received if len(t)]
        works = torch.distributed.batch_isend_irecv(messages) if messages else []
        return Transfer(works, self._note_wait)

    def _note_wait(self, seconds: float) -> None:
        self.waited_s += seconds
