"""A model that is named by its id on the hub: fetched once, by the library itself."""

import json
import socket
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from jupiterd.ctl.model_source import CONFIG, model_arguments, tokenizer_options
from jupiterd.errors import NotFoundError, RefusedError, SourceUnreachableError, UsageError
from tests.unit.workers.local_hub import NAME, serving_hub

pytestmark = pytest.mark.net

WEIGHTS = save({"model.norm.weight": np.ones(4, dtype=np.float32)})
FILES = {
    CONFIG: json.dumps({"model_type": "qwen3"}).encode(),
    "model.safetensors": WEIGHTS,
    "tokenizer.json": b"{}",
    "pytorch_model.bin": b"a pickle",
    "modeling.py": b"import os",
}


@pytest.fixture
def at_hub(tmp_path, monkeypatch):
    """Return what lets the library ask at another address, and keep what it fetches here."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.chdir(tmp_path)

    def ask_at(url):
        files = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)

    return ask_at


@pytest.fixture
def hub(at_hub):
    with serving_hub("models") as served:
        at_hub(served.url)
        yield served


def test_an_id_becomes_a_folder_without_pickles_and_programs_once(hub):
    hub.files = dict(FILES)
    asked = model_arguments(NAME)
    assert (asked["model"], asked["config"]) == ("prose", FILES[CONFIG].decode())
    folder = Path(asked["weights_folder"])
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert {path.name for path in folder.iterdir()} == {
        CONFIG, "model.safetensors", "tokenizer.json",
    }  # fmt: skip
    assert tokenizer_options(asked) == {"tokenizer_path": str(folder)}
    hub.asked.clear()
    assert model_arguments(NAME) == asked
    assert not [path for path in hub.asked if "/resolve/" in path]


def test_what_cannot_be_fetched_is_told(hub):
    hub.status, hub.code = 403, "GatedRepo"
    with pytest.raises(RefusedError, match="who have agreed to its terms"):
        model_arguments(NAME)
    hub.status = 200
    hub.files = {name: FILES[name] for name in (CONFIG, "pytorch_model.bin")}
    with pytest.raises(UsageError, match="has no safetensors"):
        model_arguments(NAME)
    with pytest.raises(NotFoundError, match="neither a folder team/other on this machine"):
        model_arguments("team/other")


def test_a_folder_of_that_name_comes_first_and_no_path_is_an_id(at_hub, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        at_hub(f"http://127.0.0.1:{closed.getsockname()[1]}")
    (tmp_path / NAME).mkdir(parents=True)
    (tmp_path / NAME / CONFIG).write_bytes(FILES[CONFIG])
    assert model_arguments(NAME)["config"] == FILES[CONFIG].decode()
    for text in ("./other", "/no/such/folder", "~/other"):
        with pytest.raises(NotFoundError, match=r"config\.json can't be read"):
            model_arguments(text)
    with pytest.raises(SourceUnreachableError, match="the hub can't be asked"):
        model_arguments("team/other")
