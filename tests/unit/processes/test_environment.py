"""What a worker finds in its environment."""

import sys
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cycle.base.key_hosts import KeyHosts
from jupiterd.errors import GeneratorRefusedError
from jupiterd.processes import environment as module
from jupiterd.processes import openblas
from jupiterd.processes.environment import WITHOUT_TOKEN, threads, worker_environment

SHELL = {
    "PATH": "/bin",
    "HOME": "/home/ada",
    "CUDA_VISIBLE_DEVICES": "1",
    "LD_PRELOAD": "/tmp/evil.so",
    "PYTHONPATH": "/tmp",
    "TRANSFORMERS_TRUST_REMOTE_CODE": "1",
    "MLX_LM_TRUST_REMOTE_CODE": "1",
    "HF_TOKEN": "secret",
    "JUPITER_JOIN": "secret",
}


def test_only_what_is_listed_passes():
    found = worker_environment("collect", {}, SHELL)
    assert found.keys() - module.ALWAYS.keys() == {
        "PATH",
        "HOME",
        "CUDA_VISIBLE_DEVICES",
        "OMP_NUM_THREADS",
    }


def test_ranks_get_the_variables_that_people_give_them_and_nobody_else_does():
    given = {"NCCL_IB_DISABLE": "0", "NCCL_P2P_DISABLE": "1", "GLOO_SOCKET_IFNAME": "ib0"}
    gang = {"world_size": 2, "interface": "eth0", "backend": "nccl", "first_host": "10.0.0.1"}
    found = worker_environment("train", gang, {}, rank_variables=given)
    assert given.items() <= found.items(), "they count more than what was found out"
    assert found["NCCL_SOCKET_IFNAME"] == "=eth0"
    alone = worker_environment("train", {}, {}, rank_variables={"CUDA_LAUNCH_BLOCKING": "1"})
    assert alone["CUDA_LAUNCH_BLOCKING"] == "1"
    assert not given.keys() & worker_environment("collect", {}, {}, rank_variables=given).keys()


def test_threads_that_wait_leave_the_cores_to_others():
    assert int(worker_environment("train", {}, {})["GOMP_SPINCOUNT"]) <= 1000


def test_nothing_is_fetched_from_the_internet():
    assert worker_environment("generate", {}, {})["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize(
    ("task", "params"),
    [("prepare", {"kind": "hugging_face"}), ("collect", {"source": {"kind": "hugging_face"}})],
)
def test_only_who_reads_a_hugging_face_data_set_reaches_the_hub(task, params):
    shell = SHELL | {
        "HTTPS_PROXY": "http://proxy",
        "no_proxy": "lan",
        "HF_HOME": "/hf",
        "HF_ENDPOINT": "https://mirror/",
    }
    found = worker_environment(task, params, shell, KeyHosts({"HF_TOKEN": "https://mirror"}))
    assert "HF_HUB_OFFLINE" not in found
    assert WITHOUT_TOKEN not in found
    names = ("HF_TOKEN", "HF_HOME", "HF_ENDPOINT", "HTTPS_PROXY", "no_proxy")
    assert [found.get(name) for name in names] == [
        "secret",
        "/hf",
        "https://mirror/",
        "http://proxy",
        "lan",
    ]
    of_a_folder = worker_environment("prepare", {"kind": "folder"}, shell)
    assert of_a_folder["HF_HUB_OFFLINE"] == "1"
    assert of_a_folder.keys().isdisjoint(names)


def test_data_of_tasks_are_fetched_before_a_model_is_scored_in_them():
    shell = {"HF_HOME": "/hf", "HF_ENDPOINT": "https://mirror/"}
    finding = worker_environment("find_tasks", {}, shell)
    assert "HF_HUB_OFFLINE" not in finding
    assert (finding["HF_HOME"], finding["HF_ENDPOINT"]) == ("/hf", "https://mirror/")
    scoring = worker_environment("grade_tasks", {}, shell)
    assert (scoring["HF_HOME"], scoring["HF_HUB_OFFLINE"]) == ("/hf", "1")
    cut_off = worker_environment("find_tasks", {}, shell | {"HF_HUB_OFFLINE": "1"})
    assert cut_off["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize(
    ("endpoint", "hosts", "is_shown"),
    [
        ("", {}, True),
        ("https://huggingface.co", {}, True),
        ("https://huggingface.co.example", {}, False),
        ("https://mirror", {}, False),
        ("http://mirror", {"HF_TOKEN": "http://mirror"}, False),
        ("", {"HF_TOKEN": "https://mirror"}, False),
    ],
)
def test_the_hubs_token_goes_to_the_hub_alone(
    endpoint: str, hosts: dict[str, str], *, is_shown: bool
):
    shell = SHELL | ({"HF_ENDPOINT": endpoint} if endpoint else {})
    found = worker_environment("prepare", {"kind": "hugging_face"}, shell, KeyHosts(hosts))
    assert ("HF_TOKEN" in found) == is_shown
    assert (found.get(WITHOUT_TOKEN) == "1") != is_shown, "it may lie in a file, too"


@pytest.mark.parametrize("task", ["generate", "ask_judge", "try_generator"])
def test_who_asks_a_server_is_given_the_key_that_is_named_and_no_other(task: str):
    shell = {"BOX_API_KEY": "secret", "OTHER_API_KEY": "other", "HTTPS_PROXY": "http://proxy"}
    params = {"server": {"url": "https://box/v1", "api_key_env": "BOX_API_KEY"}}
    bound = KeyHosts({"BOX_API_KEY": "https://box"})
    with pytest.raises(GeneratorRefusedError, match="BOX_API_KEY isn't shown to https://box: it"):
        worker_environment(task, params, shell)
    found = worker_environment(task, params, shell, bound)
    assert (found["BOX_API_KEY"], found["HTTPS_PROXY"]) == ("secret", "http://proxy")
    assert "OTHER_API_KEY" not in found
    assert "BOX_API_KEY" not in worker_environment("write_pairs", params, shell)


def test_a_rank_of_a_gang_knows_its_interface_and_its_place():
    params = {
        "rank": 3,
        "local_rank": 1,
        "local_world_size": 2,
        "node_rank": 1,
        "world_size": 4,
        "epoch": 5,
        "interface": "eth0",
    }
    found = worker_environment("train", params, {})
    assert found["GLOO_SOCKET_IFNAME"] == "eth0", "gloo crashes on the other form"
    assert (found["RANK"], found["WORLD_SIZE"], found["JUPITER_ATTEMPT"]) == ("3", "4", "5")
    assert (found["LOCAL_RANK"], found["LOCAL_WORLD_SIZE"]) == ("1", "2")
    assert found["NODE_RANK"] == found["GROUP_RANK"] == "1"


@pytest.mark.parametrize(("task", "params"), [("train", {"world_size": 1}), ("evaluate", {})])
def test_a_worker_without_a_gang_is_told_of_none(task: str, params: dict[str, Any]):
    assert "WORLD_SIZE" not in worker_environment(task, params, {})


@pytest.mark.parametrize(
    ("params", "cores", "wanted"),
    [
        ({}, 8, 8),
        ({"threads": 3, "interface": "lo", "world_size": 2}, 8, 3),
        ({"interface": "lo", "world_size": 2}, 2, 1),
        ({"interface": "lo0", "world_size": 3}, 2, 1),
        ({"interface": "eth0", "world_size": 2}, 8, 8),
        ({"interface": "eth0", "world_size": 5, "local_world_size": 3}, 8, 2),
    ],
)
def test_ranks_on_one_machine_share_its_cores(params: dict[str, Any], cores: int, wanted: int):
    assert threads(params, cores) == wanted


def test_mlx_gets_openblas_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(openblas, "_FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert "LD_PRELOAD" not in worker_environment("generate", {"engine": "mlx"}, SHELL)
    library = tmp_path / "libopenblas.so.0"
    library.touch()
    found = worker_environment("generate", {"engine": "mlx", "threads": 2}, SHELL)
    assert found["LD_PRELOAD"] == str(library)
    assert found["OPENBLAS_NUM_THREADS"] == "2"
    assert "LD_PRELOAD" not in worker_environment("generate", {}, SHELL)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert openblas.openblas() is None
    assert worker_environment("train_mlx", {"engine": "mlx"}, {})["MLX_METAL_FAST_SYNCH"] == "0"


def test_mlx_compiles_nothing_on_a_cpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert worker_environment("train_mlx", {"engine": "mlx"}, {})["MLX_DISABLE_COMPILE"] == "1"
    assert "MLX_DISABLE_COMPILE" not in worker_environment("train", {"engine": "torch"}, {})
