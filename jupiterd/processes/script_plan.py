"""Plans a launched script: on which machine each rank runs, and which variables it gets.

Owns the order of the ranks and the variables that torchrun's and MLX's scripts read. Pure: the
machines and their ports are arguments. Doesn't know how a process starts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from jupiterd.cluster.planning.gang_hosts import gang_hosts
from jupiterd.errors import UsageError

TORCH: Final = "torch"
MLX: Final = "mlx"

PLACEHOLDER: Final = "198.51.100.1:1"
"""Stands for ranks of a ring that aren't neighbours; RFC 5737 reserves this address, so no host has
it."""

MAX_RANKS: Final = 1024
MAX_PER_NODE: Final = 64
MAX_OPEN_PORTS: Final = 64
LAST_PORT: Final = 65535

_IDENTITY = (
    "MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
    "NODE_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME",
    "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS", "MLX_RANK", "MLX_HOSTFILE",
)  # fmt: skip
"""Variables that tell a rank who it is and where the others are; only Jupiter may set them."""

_THREADS = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip

SET_HERE: Final = frozenset({
    *_IDENTITY, "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY",
})  # fmt: skip
"""Variables that the plan sets for each rank, whatever its machine's environment holds."""


@dataclass(frozen=True)
class MachinePart:
    """One machine's part in a launch."""

    node: str
    name: str
    host: str
    """The address at which ranks of other machines reach those of this one."""
    interface: str
    processes: int
    cores: int
    ports: tuple[int, ...]
    """Free ports: the first for the meeting of all ranks, one more for each rank of a ring."""
    program: str = ""
    """Full path of the program; empty: as in the command."""
    folder: str = ""
    """The working folder; empty: the same as everywhere."""
    threads: int = 0
    """Threads of each process; 0: its share of the cores."""
    visible_devices: str | None = None
    """The value of CUDA_VISIBLE_DEVICES; None: as in the machine's environment."""
    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs that its processes compute on."""
    addresses: tuple[str, ...] = ()
    """All addresses of the machine; empty if it doesn't report them."""
    keeps_parts: bool = True
    """Whether its ranks survive a broken call; False for an older version."""


@dataclass(frozen=True)
class PortRange:
    """A range of ports, both ends included."""

    first: int
    last: int

    def __contains__(self, port: int) -> bool:
        return self.first <= port <= self.last


@dataclass(frozen=True)
class RankOrder:
    """One process of a script."""

    rank: int
    variables: Mapping[str, str]
    defaults: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that are set only if the machine's environment doesn't set them."""
    hostfile: str = ""
    """The text that MLX reads about its ring; MLX_HOSTFILE will name the file with it."""


@dataclass(frozen=True)
class ScriptOrder:
    """The part of a launch that runs on one machine."""

    argv: tuple[str, ...]
    folder: str
    ranks: tuple[RankOrder, ...]
    store_host: str = ""
    """Where the ranks meet; empty if that is on another machine, or nowhere."""
    store_port: int = 0
    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs on which no gang may train meanwhile."""
    shipped: str = ""
    """The artifact of a folder that was sent along; the machine unpacks it into a folder of its
    own."""
    id: str = ""
    """Id by which callers follow the order; empty if it ends with the caller that started it."""
    cut_timeout_s: int = 60
    """How long its ranks go on while nobody asks for them, in s."""
    member_hosts: tuple[str, ...] = ()
    """The only addresses from which the store and the ranks can be reached; empty: any."""
    open_ports: tuple[PortRange, ...] = ()
    """Ports on which the script, if it listens there, can be reached from any address."""
    window: tuple[int, int] = (0, 0)
    """Rows and columns of the ranks' terminal; (0, 0): no terminal."""


@dataclass(frozen=True)
class LaunchAttempt:
    """One attempt of a launch: after a failure all ranks may start again."""

    run_id: str
    restart: int = 0
    """How many earlier attempts there were."""
    max_restarts: int = 0


def ring_ports(engine: str, processes: int) -> int:
    """Return how many ports a machine needs besides the one for the meeting."""
    return processes if engine == MLX else 0


def orders(
    places: Sequence[MachinePart],
    argv: Sequence[str],
    folder: str,
    engine: str,
    attempt: LaunchAttempt,
    given: Mapping[str, str],
) -> list[ScriptOrder]:
    """Return the order for each place; ranks are numbered machine by machine.

    Args:
        places: the machines, in the order of their ranks.
        argv: program and arguments.
        folder: the working folder, unless a place has its own.
        engine: "torch" or "mlx".
        attempt: the run's id and the number of this attempt.
        given: variables that the user sets for every process.

    Raises:
        UsageError: only Jupiter may set one of them, or there are too many ranks.
    """
    if taken := sorted(set(given) & set(_IDENTITY)):
        raise UsageError(f"{taken[0]} is set by jupiterctl launch itself", "leave that --env away")
    world = sum(place.processes for place in places)
    if world > MAX_RANKS:
        raise UsageError(f"{world} processes are more than the {MAX_RANKS} that can meet")
    ring = _ring(places) if engine == MLX and world > 1 else []
    hosts = gang_hosts((place.host, place.addresses) for place in places)
    found: list[ScriptOrder] = []
    first = 0
    for number, place in enumerate(places):
        ranks = tuple(
            RankOrder(
                rank=first + local,
                variables={
                    **_identity(places, number, local, first + local, attempt, engine),
                    **_network(place, is_alone=len(places) == 1),
                    **_visible(place),
                    **given,
                },
                defaults=_defaults(place),
                hostfile=hostfile(ring, first + local) if ring else "",
            )
            for local in range(place.processes)
        )
        first += place.processes
        has_store = number == 0 and engine == TORCH and world > 1
        meeting = (place.host, place.ports[0]) if has_store else ("", 0)
        command = (place.program or argv[0], *argv[1:])
        where = place.folder or folder
        found.append(
            ScriptOrder(command, where, ranks, *meeting, gpus=place.gpus, member_hosts=hosts)
        )
    return found


def threads_of(count: int) -> dict[str, str]:
    """Return the variables that make every library compute with `count` threads."""
    return dict.fromkeys(_THREADS, str(count))


def _visible(place: MachinePart) -> dict[str, str]:
    is_as_it_is = place.visible_devices is None
    return {} if is_as_it_is else {"CUDA_VISIBLE_DEVICES": str(place.visible_devices)}


def hostfile(ring: Sequence[str], rank: int) -> str:
    """Return the text that a rank of an MLX ring reads: its own address and its right neighbour's.

    All other addresses are placeholders, so that their number is that of the ranks.
    """
    neighbours = {rank, (rank + 1) % len(ring)}
    entries = [
        [address if number in neighbours else PLACEHOLDER] for number, address in enumerate(ring)
    ]
    return json.dumps(entries)


def own_address(ring: str, rank: int) -> tuple[str, int] | None:
    """Return the host and port at which a rank listens, from its hostfile; None without one.

    None too if another machine sent a malformed hostfile: the script itself will fail on it.
    """
    try:
        host, _, port = str(json.loads(ring)[rank][0]).rpartition(":")
        return (host, int(port)) if host else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _ring(places: Sequence[MachinePart]) -> list[str]:
    return [
        f"{place.host}:{port}" for place in places for port in place.ports[1 : 1 + place.processes]
    ]


def _identity(
    places: Sequence[MachinePart],
    node_rank: int,
    local: int,
    rank: int,
    attempt: LaunchAttempt,
    engine: str,
) -> dict[str, str]:
    place, world = places[node_rank], sum(place.processes for place in places)
    found: dict[str, str | int] = {
        "MASTER_ADDR": places[0].host,
        "MASTER_PORT": places[0].ports[0],
        "RANK": rank,
        "LOCAL_RANK": local,
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": place.processes,
        "NODE_RANK": node_rank,
        "GROUP_RANK": node_rank,
        "GROUP_WORLD_SIZE": len(places),
        "ROLE_NAME": "default",
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": world,
        "TORCHELASTIC_RUN_ID": attempt.run_id,
        "TORCHELASTIC_RESTART_COUNT": attempt.restart,
        "TORCHELASTIC_MAX_RESTARTS": attempt.max_restarts,
    }
    if world > 1 and engine == TORCH:  # all ranks use our store; else rank 0 opens one
        found["TORCHELASTIC_USE_AGENT_STORE"] = "True"
    if world > 1 and engine == MLX:  # a ring of one would connect to itself and fail
        found["MLX_RANK"] = rank
    return {name: str(value) for name, value in found.items()}


def _network(place: MachinePart, *, is_alone: bool) -> dict[str, str]:
    """Name one interface: else gloo resolves the host name, which may mean 127.0.1.1."""
    found = {
        "GLOO_SOCKET_IFNAME": place.interface,
        "NCCL_SOCKET_IFNAME": f"={place.interface}",
    }
    if not is_alone:
        found["NCCL_SOCKET_FAMILY"] = "AF_INET6" if ":" in place.host else "AF_INET"
    return found


def _defaults(place: MachinePart) -> dict[str, str]:
    return {
        "OMP_NUM_THREADS": str(place.threads or max(1, place.cores // place.processes)),
        "PYTHONUNBUFFERED": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "30",
    }
