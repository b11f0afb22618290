"""Are the variables that people give this machine's ranks (`env:`) spelt right?

Owns the names that libraries read, how their lists of interfaces are read, and the finding. A name
that isn't known may be that of a newer library: it is doubted only where it is nearly a known one.
"""

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

import psutil

from jupiterd.doctor.examined_machine import ExaminedMachine
from jupiterd.doctor.finding import Finding, not_here, ok, warn

CHECK: Final = "env"

_NCCL: Final = """
    ALGO BUFFSIZE CHECKS_DISABLE COLLNET_ENABLE COLLNET_NODE_THRESHOLD COMM_ID CONF_FILE
    CREATE_THREAD_CONTEXT CROSS_NIC CTA_POLICY CUMEM_ENABLE CUMEM_HOST_ENABLE DEBUG DEBUG_FILE
    DEBUG_SUBSYS DEBUG_TIMESTAMP_FORMAT DEBUG_TIMESTAMP_LEVELS DMABUF_ENABLE GDRCOPY_ENABLE
    GRAPH_DUMP_FILE GRAPH_FILE GRAPH_MIXING_SUPPORT GRAPH_REGISTER HOSTID IB_ADAPTIVE_ROUTING
    IB_ADDR_FAMILY IB_ADDR_RANGE IB_CUDA_SUPPORT IB_DISABLE IB_ECE_ENABLE IB_GID_INDEX IB_HCA
    IB_MERGE_NICS IB_MERGE_VFS IB_PCI_RELAXED_ORDERING IB_PKEY IB_QPS_PER_CONNECTION IB_RETRY_CNT
    IB_ROCE_VERSION_NUM IB_RETURN_ASYNC_EVENTS IB_SL IB_SPLIT_DATA_ON_QPS IB_TC IB_TIMEOUT
    IGNORE_CPU_AFFINITY IGNORE_DISABLED_P2P LAUNCH_MODE LAUNCH_ORDER_IMPLICIT LL_BUFFSIZE
    LL128_BUFFSIZE LL_THRESHOLD LOCAL_REGISTER MAX_CTAS MAX_NCHANNELS MAX_NRINGS MIN_CTAS
    MIN_NCHANNELS MIN_NRINGS MNNVL_CLIQUE_ID MNNVL_ENABLE MNNVL_UUID NCHANNELS_PER_NET_PEER NET
    NET_DISABLE_INTRA NET_FORCE_FLUSH NET_GDR_C2C NET_GDR_LEVEL NET_GDR_READ NET_PLUGIN
    NET_SHARED_BUFFERS NET_SHARED_COMMS NSOCKS_PERTHREAD NTHREADS NVB_DISABLE NVLS_ENABLE
    OOB_NET_ENABLE OOB_NET_IFNAME P2P_DIRECT_DISABLE P2P_DISABLE P2P_LEVEL P2P_NET_CHUNKSIZE
    P2P_NVL_CHUNKSIZE P2P_PCI_CHUNKSIZE P2P_PXN_LEVEL PROFILER_PLUGIN PROTO PXN_C2C PXN_DISABLE
    RAS_ADDR RAS_ENABLE RAS_TIMEOUT_FACTOR RUNTIME_CONNECT SET_STACK_SIZE SET_THREAD_NAME
    SHM_DISABLE SHM_LOCALITY SHM_USE_CUDA_MEMCPY SINGLE_RING_THRESHOLD SOCKET_FAMILY SOCKET_IFNAME
    SOCKET_NTHREADS SOCKET_POLL_TIMEOUT_MSEC SOCKET_RETRY_CNT SOCKET_RETRY_SLEEP_MSEC TOPO_DUMP_FILE
    TOPO_FILE TREE_THRESHOLD TUNER_PLUGIN WARN_ENABLE_DEBUG_INFO WIN_ENABLE WORK_FIFO_DEPTH
""".split()  # noqa: SIM905 - a list of a hundred words
"""Source: NVIDIA, NCCL documentation, "Environment Variables"."""

_GLOO: Final = ("SOCKET_IFNAME", "DEVICE_TRANSPORT", "ENABLE_STORE_V2_API", "LOG_LEVEL")
_CUDA: Final = (
    "CACHE_DISABLE",
    "CACHE_MAXSIZE",
    "CACHE_PATH",
    "DEVICE_MAX_CONNECTIONS",
    "FORCE_PTX_JIT",
    "LAUNCH_BLOCKING",
    "LAZY_LOADING",
    "MODULE_LOADING",
    "SCALE_LAUNCH_QUEUES",
)
KNOWN: Final = frozenset(
    {f"NCCL_{name}" for name in _NCCL}
    | {f"GLOO_{name}" for name in _GLOO}
    | {f"CUDA_{name}" for name in _CUDA}
)

GLOO_INTERFACES: Final = "GLOO_SOCKET_IFNAME"
NCCL_INTERFACES: Final = ("NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME")
_NEAR: Final = 0.86
"""Of difflib's ratio: one letter more, less or other in ten."""


def judge(machine: ExaminedMachine) -> list[Finding]:
    """Return a finding for each variable that is probably mistyped, or one that all is well."""
    variables = machine.rank_variables
    if not variables:
        return [not_here(CHECK, "no variables are given to ranks")]
    found = [*doubts(variables, psutil.net_if_addrs())]
    if not found:
        return [ok(CHECK, f"given to ranks: {', '.join(sorted(variables))}")]
    return [warn(CHECK, each, "mend env: in jupiter.yaml, and restart jupiterd") for each in found]


def doubts(variables: Mapping[str, str], interfaces: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each name, or interface, that is probably mistyped.

    Args:
        variables: as settings have them.
        interfaces: the names of this machine's.
    """
    for name, value in variables.items():
        near = [] if name in KNOWN else get_close_matches(name, KNOWN, 1, _NEAR)
        if near:
            yield f"{name} is read by no library that is known here; did you mean {near[0]}?"
        if missing := [*_missing(name, value, interfaces)]:
            there = ", ".join(sorted(interfaces)) or "none"
            yield f"{name} names {', '.join(missing)}; this machine's interfaces: {there}"


def _missing(name: str, value: str, interfaces: Collection[str]) -> Iterator[str]:
    """Yield the interfaces that are wanted, and aren't there.

    gloo wants whole names. NCCL's are beginnings of names, whole ones after "=", and after "^"
    those that aren't wanted. Of NCCL's one is enough.
    """
    if name == GLOO_INTERFACES:
        wanted = [each.strip() for each in value.split(",") if each.strip()]
        yield from (each for each in wanted if each not in interfaces)
    elif name in NCCL_INTERFACES and not value.startswith("^"):
        is_whole = value.startswith("=")
        wanted = [each.strip() for each in value.removeprefix("=").split(",") if each.strip()]
        found = (
            each == there if is_whole else there.startswith(each)
            for each in wanted
            for there in interfaces
        )
        if not any(found):
            yield from wanted
