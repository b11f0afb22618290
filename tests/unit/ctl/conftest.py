"""A scripted daemon on the unix sockets of a state folder, and jupiterctl run against it."""

import asyncio
import json
import os
import queue
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent import futures
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from anyio.from_thread import start_blocking_portal

from jupiterd.ctl.main import run
from jupiterd.ctl.preflight import cycle_preflight
from jupiterd.cycle.domain.survey import Survey
from jupiterd.daemon.api.question_socket import question_socket
from jupiterd.errors import JupiterError, NotFoundError
from jupiterd.locations import CONTROL_SOCKET, QUESTION_SOCKET
from jupiterd.protocol.call_errors import CODE_KEY, HINT_KEY
from jupiterd.rpc import control_pb2, control_pb2_grpc
from tests.support.ctl.documents import STATUS, cycle
from tests.support.ctl.surveys import ENOUGH
from tests.support.ctl.warm_looks import warm_looks

__all__ = ["warm_looks"]

GOLDEN = Path(__file__).parent / "golden"
THREADS = 4


class ScriptedDaemon(control_pb2_grpc.ControlServicer):
    """Answers from its documents, and lets a watch see `watched` one after the other."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.documents: dict[str, dict] = {
            "status": STATUS,
            "cycle": {"schema": "jupiter/v1", "cycle": cycle()},
            "data": {"schema": "jupiter/v1", "data": []},
            "questions": {"schema": "jupiter/v1", "questions": None},
        }
        self.results: dict[str, object] = {
            "cycle.start": {"schema": "jupiter/v1", "cycle": cycle()["id"]}
        }
        self.failure: JupiterError | None = None
        self.refusals: dict[str, JupiterError] = {}
        self.executed: list[tuple[str, dict]] = []
        self.watched: queue.SimpleQueue[dict | None] = queue.SimpleQueue()

    async def document(self, noun: str) -> dict:
        """Answer as on the question socket."""
        if self.failure is not None:
            raise self.failure
        return self._told(noun)

    def _told(self, noun: str) -> dict:
        """Return what is kept of a noun; of one that names a subject, that of its kind."""
        return self.documents.get(noun) or self.documents[noun.partition("/")[0]]

    def Status(self, request, context):  # noqa: N802 - gRPC's name
        self._fail(context)
        return control_pb2.Document(json=json.dumps(self._told(request.noun)))

    def Execute(self, request, context):  # noqa: N802 - gRPC's name
        told = json.loads(request.arguments_json)
        meant = told["verb"] if request.verb == "dry_run" else request.verb
        self._fail(context, self.refusals.get(meant))
        self.executed.append((request.verb, told))
        done = self.results.get(request.verb, {"schema": "jupiter/v1"})
        return control_pb2.Document(json=json.dumps(done))

    def Watch(self, request, context):  # noqa: N802 - gRPC's name
        while (document := self.watched.get()) is not None:
            noun = request.noun.partition("/")[0]
            text = json.dumps({"schema": "jupiter/v1", noun: document})
            yield control_pb2.WatchEvent(snapshot=control_pb2.Document(json=text))

    def _fail(self, context, refusal=None):
        if (failure := self.failure or refusal) is not None:
            pairs = ((CODE_KEY, failure.code), (HINT_KEY, failure.hint.encode()))
            context.set_trailing_metadata(pairs)
            context.abort(grpc.StatusCode[failure.grpc_status], failure.message)


@pytest.fixture(autouse=True)
def looked(monkeypatch) -> Callable[[Survey], None]:
    """Let a look at sources find enough text at once, or what the test says."""

    def find(survey: Survey) -> None:
        monkeypatch.setattr(cycle_preflight, "survey_of", lambda _domain, _told: survey)

    find(ENOUGH)
    return find


@pytest.fixture
def state_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="jt-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def daemon(older_daemon: ScriptedDaemon) -> Iterator[ScriptedDaemon]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_answering_questions(older_daemon)),
    ):
        yield older_daemon


@asynccontextmanager
async def _answering_questions(daemon: ScriptedDaemon) -> AsyncGenerator[None]:
    path = daemon.state_dir / QUESTION_SOCKET
    async with asyncio.TaskGroup() as group, question_socket(path, daemon.document, group):
        yield


@pytest.fixture
def older_daemon(state_dir: Path) -> Iterator[ScriptedDaemon]:
    """One that is asked over gRPC alone."""
    with futures.ThreadPoolExecutor(THREADS) as pool:
        server = grpc.server(pool)
        scripted = ScriptedDaemon(state_dir)
        control_pb2_grpc.add_ControlServicer_to_server(scripted, server)
        assert server.add_insecure_port(f"unix:{state_dir}/{CONTROL_SOCKET}")
        server.start()
        yield scripted
        for _ in range(THREADS):  # a client that connected again has left its first watch waiting
            scripted.watched.put(None)
        server.stop(None).wait()


@dataclass(frozen=True)
class Ran:
    exit_code: int
    out: str
    err: str


@pytest.fixture
def ctl(state_dir: Path, monkeypatch, capsys) -> Callable[..., Ran]:
    """Run jupiterctl in this process, against the daemon of `state_dir`."""
    monkeypatch.setenv("JUPITER_STATE_DIR", str(state_dir))

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        exit_code = run(arguments)
        captured = capsys.readouterr()
        return Ran(int(exit_code), captured.out, captured.err)

    return call


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare with tests/unit/ctl/golden; JUPITER_UPDATE_GOLDEN=1 writes the files instead."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("JUPITER_UPDATE_GOLDEN"):
            path.write_text(text)
        if not path.exists():
            raise NotFoundError(f"{path} is missing", "JUPITER_UPDATE_GOLDEN=1 make test")
        assert text == path.read_text()

    return compare
