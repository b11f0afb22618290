"""The environment variables of a worker process: those that it inherits and those that we set.

Owns that list. Doesn't know processes, or what a task does. A worker inherits no other variable of
the daemon, so the user's shell can't change what a library does (for instance let it run code that
came with a model).
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

from jupiterd.cluster.planning.backends import NCCL
from jupiterd.cycle.base.key_hosts import (
    HUB,
    HUB_TOKEN,
    KeyHosts,
    is_loopback,
    origin_of,
    what_to_write,
)
from jupiterd.cycle.questions.task_scores import FINDING_TASKS, SCORING_TASKS
from jupiterd.errors import GeneratorRefusedError
from jupiterd.processes.nccl_environment import finds_infiniband, nccl_environment
from jupiterd.processes.openblas import openblas
from jupiterd.processor_limits import usable_cores

PASSED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "NCCL_DEBUG",
)
"""Variables that a worker inherits from the daemon."""

OFFLINE = "HF_HUB_OFFLINE"
WITHOUT_TOKEN = "HF_HUB_DISABLE_IMPLICIT_TOKEN"  # noqa: S105 - the name of a variable
"""Keeps the Hugging Face library from sending a token, from a variable or from a file."""

ALWAYS = {
    "PYTHONUNBUFFERED": "1",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # so that indices equal those of nvidia-smi
    OFFLINE: "1",  # models are artifacts, never downloads
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # How often a waiting thread of torch spins before it sleeps: about 50 µs. The default spins for
    # milliseconds and takes the cores from the threads that it waits for: on a busy machine a step
    # of the model size 1m took 1.05 s of processor time with the default, and takes 0.13 s so.
    "GOMP_SPINCOUNT": "1000",
}

GRAPH_CACHE = "TORCHINDUCTOR_CACHE_DIR"
"""Where torch's compiler keeps what it makes; by itself in a folder of /tmp."""

TO_THE_INTERNET = tuple(
    name
    for each in (HUB_TOKEN, "HF_HOME", "HF_ENDPOINT", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
    for name in ((each, each.lower()) if each.endswith("PROXY") else (each,))
)
"""A worker that reads a Hugging Face data set inherits these too."""

DATA_FOLDER = "HF_HOME"

ASKING_SERVERS = frozenset({"generate", "try_generator", "ask_judge"})
"""Tasks that may send requests to a server, which may need a key."""

MEETING_TASKS = frozenset({"train", "check_sync"})
"""Tasks whose ranks connect through torch's process groups."""


_NO_KEYS = KeyHosts()
_NO_VARIABLES: Mapping[str, str] = {}


def worker_environment(
    task: str,
    params: Mapping[str, Any],
    daemon_environment: Mapping[str, str] = os.environ,
    key_hosts: KeyHosts = _NO_KEYS,
    rank_variables: Mapping[str, str] = _NO_VARIABLES,
) -> dict[str, str]:
    """Return the whole environment of a worker that does `task` with these parameters.

    Args:
        task: what the worker does.
        params: of the task.
        daemon_environment: what some variables are inherited from.
        key_hosts: which key may be shown to which host.
        rank_variables: what people give the ranks of this machine; it counts more than ours.

    Raises:
        GeneratorRefusedError: `key_hosts` doesn't allow a key for the server's address.
    """
    environment = {
        name: daemon_environment[name] for name in PASSED_ON if name in daemon_environment
    }
    environment |= ALWAYS
    if _reads_hugging_face(task, params):
        del environment[OFFLINE]
        passed = (name for name in TO_THE_INTERNET if name in daemon_environment)
        environment |= {name: daemon_environment[name] for name in passed}
        if not key_hosts.allows(HUB_TOKEN, environment.get("HF_ENDPOINT") or HUB):
            environment.pop(HUB_TOKEN, None)
            environment[WITHOUT_TOKEN] = "1"
    if task in {FINDING_TASKS, SCORING_TASKS}:
        environment |= _of_tasks(task, daemon_environment)
    environment |= _of_generator(task, params, daemon_environment, key_hosts)
    environment["OMP_NUM_THREADS"] = str(threads(params, usable_cores()))
    if task in MEETING_TASKS and int(params.get("world_size", 1)) > 1:
        environment |= _gang_environment(params)
    if params.get("engine") == "mlx":
        environment |= _mlx_environment(environment["OMP_NUM_THREADS"])
    return environment | (dict(rank_variables) if task in MEETING_TASKS else {})


def _of_generator(
    task: str, params: Mapping[str, Any], daemon_environment: Mapping[str, str], key_hosts: KeyHosts
) -> dict[str, str]:
    """Return what a worker needs to send requests to a server: its key and the proxies."""
    server = params.get("server") if task in ASKING_SERVERS else None
    if not server:
        return {}
    key, url = str(server.get("api_key_env", "")), str(server.get("url", ""))
    if key and not key_hosts.allows(key, url):
        raise GeneratorRefusedError(
            f"{key[:80]} isn't shown to {origin_of(url) or url[:200]}: it isn't bound to that host",
            what_to_write(key[:80], url),
        )
    wanted = [key] if key else []
    if not is_loopback(url):
        wanted += [name for name in TO_THE_INTERNET if name.lower().endswith("proxy")]
    return {name: daemon_environment[name] for name in wanted if name in daemon_environment}


def _of_tasks(task: str, daemon_environment: Mapping[str, str]) -> dict[str, str]:
    """Return where data sets lie; whoever says that the hub can't be reached is believed."""
    passed = [DATA_FOLDER, *([OFFLINE] if task == FINDING_TASKS else [])]
    return {name: daemon_environment[name] for name in passed if name in daemon_environment}


def _reads_hugging_face(task: str, params: Mapping[str, Any]) -> bool:
    if task == FINDING_TASKS:
        return True
    source = {"prepare": params, "collect": params.get("source", {})}.get(task, {})
    return source.get("kind") == "hugging_face"


def threads(params: Mapping[str, Any], cores: int) -> int:
    """Return with how many threads a worker computes, on a machine with that many cores.

    Ranks that connect over loopback share the cores of one machine; so do the ranks of one node.
    """
    if given := int(params.get("threads", 0)):
        return given
    is_shared = str(params.get("interface", "")).startswith("lo")
    sharing = params.get("world_size" if is_shared else "local_world_size", 1)
    return max(1, cores // int(sharing))


def _mlx_environment(threads: str) -> dict[str, str]:
    environment = {"MLX_ENABLE_TF32": "0"}  # full fp32 precision, as on torch
    if sys.platform != "linux":
        return environment | {"MLX_METAL_FAST_SYNCH": "0"}  # 1 hangs GPUs until a reboot
    # On a CPU, MLX would compile kernels with g++ if it is installed, into a shared folder.
    environment |= {"MLX_DISABLE_COMPILE": "1"}
    if blas := openblas():
        environment |= {"LD_PRELOAD": blas, "OPENBLAS_NUM_THREADS": threads}
    return environment


def _gang_environment(params: Mapping[str, Any]) -> dict[str, str]:
    environment = {
        "RANK": str(params.get("rank", 0)),
        "WORLD_SIZE": str(params["world_size"]),
        "LOCAL_RANK": str(params.get("local_rank", 0)),
        "LOCAL_WORLD_SIZE": str(params.get("local_world_size", 1)),
        "NODE_RANK": str(params.get("node_rank", params.get("rank", 0))),
        "GROUP_RANK": str(params.get("node_rank", params.get("rank", 0))),
        "JUPITER_ATTEMPT": str(params.get("epoch", 0)),
    }
    if interface := str(params.get("interface", "")):
        # Else gloo resolves the host name, which Debian maps to 127.0.1.1.
        environment["GLOO_SOCKET_IFNAME"] = interface
    if params.get("backend") == NCCL:
        first_host = str(params.get("first_host", ""))
        environment |= nccl_environment(interface, first_host, has_infiniband=finds_infiniband())
    return environment
