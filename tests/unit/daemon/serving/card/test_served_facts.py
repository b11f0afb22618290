"""What clients are told of a model beside its name."""

import json

from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.serving.serving_rows import ModelLoad, NodeServing
from jupiterd.daemon.serving.card.served_facts import ServedFacts
from jupiterd.ids import ArtifactId, NodeId
from tests.support.cluster.building import NODES, admitted
from tests.unit.daemon.catalog.test_model_catalog import BEGUN, FIRST, made, said
from tests.unit.daemon.serving.card.test_ledger_fields import state_of

CONFIG = json.dumps({"max_position_embeddings": 256}).encode()


class Files:
    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.read_names = files, []

    async def read(self, artifact: ArtifactId, path: str, most_bytes: int) -> bytes | None:
        self.read_names.append((artifact, path))
        return self.files.get(path)


class Replica:
    def __init__(self) -> None:
        members = [admitted(node) for node in NODES[:3]]
        self.state = state_of(*members, BEGUN, made(FIRST), *said(FIRST, "PROMOTE"))


def facts(files: Files, serving: dict[NodeId, NodeServing] | None = None) -> ServedFacts:
    return ServedFacts(Replica(), files, lambda: serving or {})


MODEL = ServedModel("promoted", FIRST)


async def test_the_ledger_the_files_and_the_members_tell_of_a_model():
    ready, loading = ModelLoad("promoted", FIRST), ModelLoad("python/1", FIRST, is_ready=False)
    other = ModelLoad("else", ArtifactId("9" * 64))
    serving = {
        NODES[0]: NodeServing((other, ready)),
        NODES[1]: NodeServing((loading,)),
        NODES[2]: NodeServing((other,)),
    }
    files = Files({"config.json": CONFIG, "chat_template.jinja": b"{{ messages }}"})
    told = await facts(files, serving).of(MODEL)
    assert (told["name"], told["verdict"]) == ("python/1", "PROMOTE")
    assert (told["chat"], told["context_tokens"]) == (True, 256)
    assert (told["node"], told["loaded"]) == (admitted(NODES[0]).name, True)


async def test_files_are_read_once_unless_nobody_has_them():
    files = Files({})
    here = facts(files)
    assert "chat" not in await here.of(MODEL)
    files.files["config.json"] = CONFIG
    assert (await here.of(MODEL))["chat"] is False
    count = len(files.read_names)
    assert (await here.of(MODEL))["loaded"] is False
    assert len(files.read_names) == count


async def test_a_template_may_lie_in_the_tokenizers_settings():
    said_there = json.dumps({"chat_template": "{{ messages }}"}).encode()
    told = await facts(Files({"config.json": CONFIG, "tokenizer_config.json": said_there})).of(
        MODEL
    )
    assert told["chat"] is True


async def test_odd_files_are_no_end_of_it():
    odd = {"config.json": b"[1]", "tokenizer_config.json": b"{{{"}
    told = await facts(Files(odd)).of(MODEL)
    assert (told["chat"], told["context_tokens"]) == (False, 2048)


async def test_a_folder_of_this_machine_tells_of_itself(tmp_path):
    (tmp_path / "config.json").write_bytes(CONFIG)
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    told = await facts(Files({})).of(ServedModel(str(tmp_path), None, str(tmp_path)))
    assert told == {"chat": True, "context_tokens": 256}
