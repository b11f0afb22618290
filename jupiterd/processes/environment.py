"""The environment of a worker process: what is let through, and what we add.

Owns that list. Doesn't know processes or tasks' meaning. Nothing else of the daemon's environment
reaches a worker, so no variable of the user's shell can change what a library does behind our back
(such as permission to run code that came with a model).
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
"""Variables a worker inherits, where the daemon has them."""

OFFLINE = "HF_HUB_OFFLINE"
WITHOUT_TOKEN = "HF_HUB_DISABLE_IMPLICIT_TOKEN"  # noqa: S105 - the name of a variable
"""Keeps the hub's library from showing a token: that of a variable, and that of a file."""

ALWAYS = {
    "PYTHONUNBUFFERED": "1",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # so that an index means what nvidia-smi shows
    OFFLINE: "1",  # models come as artifacts, never from the internet
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # How often a thread of torch looks before it sleeps, where it waits for the others: some 50 µs.
    # Usual are milliseconds, which take the cores from whoever is waited for on a busy machine: a
    # step of the size 1m then took 1.05 s of processor time, and takes 0.13 s.
    "GOMP_SPINCOUNT": "1000",
}

TO_THE_INTERNET = tuple(
    name
    for each in (HUB_TOKEN, "HF_HOME", "HF_ENDPOINT", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
    for name in ((each, each.lower()) if each.endswith("PROXY") else (each,))
)
"""Inherited too by the one worker that fetches from there: it reads a Hugging Face data set."""

ASKING_SERVERS = frozenset({"generate", "try_generator", "ask_judge"})
"""Tasks that may be done by asking a server, which wants a key."""

MEETING_TASKS = frozenset({"train", "check_sync"})
"""Tasks whose ranks meet over torch's process groups."""


_NO_KEYS = KeyHosts()


def worker_environment(
    task: str,
    params: Mapping[str, Any],
    daemon_environment: Mapping[str, str] = os.environ,
    key_hosts: KeyHosts = _NO_KEYS,
) -> dict[str, str]:
    """Return the whole environment of a worker that does `task` with these parameters.

    Raises:
        GeneratorRefusedError: a key isn't bound to the address that it is to be shown to.
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
    environment |= _of_generator(task, params, daemon_environment, key_hosts)
    environment["OMP_NUM_THREADS"] = str(threads(params, usable_cores()))
    if task in MEETING_TASKS and int(params.get("world_size", 1)) > 1:
        environment |= _gang_environment(params)
    if params.get("engine") == "mlx":
        environment |= _mlx_environment(environment["OMP_NUM_THREADS"])
    return environment


def _of_generator(
    task: str, params: Mapping[str, Any], daemon_environment: Mapping[str, str], key_hosts: KeyHosts
) -> dict[str, str]:
    """Return what a worker needs to ask a server for text: the key that is named, and proxies."""
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


def _reads_hugging_face(task: str, params: Mapping[str, Any]) -> bool:
    source = {"prepare": params, "collect": params.get("source", {})}.get(task, {})
    return source.get("kind") == "hugging_face"


def threads(params: Mapping[str, Any], cores: int) -> int:
    """Return how many threads a worker computes with, on a machine with that many cores.

    Ranks that meet over loopback share one machine, and therefore its cores; so do those of a node.
    """
    if given := int(params.get("threads", 0)):
        return given
    is_shared = str(params.get("interface", "")).startswith("lo")
    sharing = params.get("world_size" if is_shared else "local_world_size", 1)
    return max(1, cores // int(sharing))


def _mlx_environment(threads: str) -> dict[str, str]:
    environment = {"MLX_ENABLE_TF32": "0"}  # fp32 is fp32, as it is on torch
    if sys.platform != "linux":
        return environment | {"MLX_METAL_FAST_SYNCH": "0"}  # 1 wedges GPUs until a reboot
    # On a CPU, MLX would compile kernels with g++ where there is one, into a shared folder.
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
        # gloo would else resolve the host name, which Debian maps to 127.0.1.1.
        environment["GLOO_SOCKET_IFNAME"] = interface
    if params.get("backend") == NCCL:
        first_host = str(params.get("first_host", ""))
        environment |= nccl_environment(interface, first_host, has_infiniband=finds_infiniband())
    return environment
