"""cluster.yaml: the static form of a cluster, which nobody needs and some people want.

Owns the file's form and its checks; `config/cluster.example.yaml` shows every key. Doesn't know
what becomes of what it says. Its models take 11 MB for good: loaded only where there is a file.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from jupiterd.cluster.membership.admission import MAX_MEMBERS
from jupiterd.cluster.planning.cluster_file_policy import ClusterFile, MachineEntry
from jupiterd.cluster.planning.engines import AUTO
from jupiterd.cycle.base.strict_model import StrictModel
from jupiterd.cycle.base.yaml_text import MAX_TEXT_BYTES, YamlMistakesError, line_finder, parse_yaml
from jupiterd.daemon.runtime.address_text import parse_address
from jupiterd.errors import InvalidClusterFileError

MAX_SYNC_EVERY = 100_000

HOST = "HOST, HOST:PORT or [IPv6]:PORT"


def _address(text: str) -> str:
    """Return HOST:PORT in the one form that others have too; names of hosts have no capitals."""
    host, scope, rest = text.partition("%")
    try:
        return str(parse_address(host.lower() + scope + rest))
    except ValueError as error:
        raise ValueError(f"expected {HOST}, got {text!r}") from error


def _text(most: int, expected: str = "") -> FieldInfo:
    expectation = expected or f"text of 1 to {most} characters"
    return FieldInfo(
        annotation=None, min_length=1, max_length=most, json_schema_extra={"expected": expectation}
    )


class WrittenNode(StrictModel):
    """One machine; every key may be left out, but not both that identify it."""

    host: Annotated[str, _text(255, HOST), AfterValidator(_address)] = ""
    """Where it answers; tried as with --peer."""
    name: Annotated[str, _text(64)] = ""
    """What the node is called: its --name, else its host name."""
    device_type: Literal["mac", "nvidia", "cpu"] | None = None
    memory_gb: Annotated[float, Field(ge=0.25, le=1_048_576)] | None = None
    """Of the machine, of one of its GPUs or of all of them."""
    chip: Annotated[str, _text(80)] = ""
    role: Literal["generator", "trainer", "hybrid"] | None = None
    """What it does while nobody says otherwise by command."""
    connection_type: Literal["thunderbolt", "ethernet", "wifi"] | None = None
    """Of its own end of the link in use."""
    ssh_user: Annotated[str, _text(64)] = ""
    """Not needed; taken because such files often have it."""

    @model_validator(mode="after")
    def _is_identified(self) -> Self:
        if not (self.host or self.name):
            raise ValueError("expected host or name, got neither")
        return self


class WrittenCluster(StrictModel):
    """The whole file."""

    backend: Literal["auto", "islands", "mpi", "torch", "mlx"] = AUTO
    """What runs train on where --engine isn't given; mpi is another word for islands."""
    sync_every: Annotated[int, Field(ge=1, le=MAX_SYNC_EVERY)] | None = None
    """Inner steps of an island between two exchanges."""
    nodes: Annotated[tuple[WrittenNode, ...], Field(strict=False, max_length=MAX_MEMBERS)] = ()

    @field_validator("nodes")
    @classmethod
    def _differ(cls, nodes: tuple[WrittenNode, ...]) -> tuple[WrittenNode, ...]:
        for key in ("host", "name"):
            given = [str(getattr(node, key)) for node in nodes if getattr(node, key)]
            if twice := sorted({value for value in given if given.count(value) > 1}):
                raise ValueError(f"expected a different {key} for each, got {twice[0]!r} twice")
        return nodes


def read_cluster_file(path: Path) -> ClusterFile:
    """Return what the file says.

    Raises:
        InvalidClusterFileError: with file, line and what was expected there.
    """
    text = _read(path)
    if len(text) <= MAX_TEXT_BYTES and _says_nothing(text):
        return ClusterFile(str(path))
    try:
        form = parse_yaml(text, str(path), WrittenCluster)
    except YamlMistakesError as error:
        more = len(error.mistakes) - 1
        others = f" (and {more} more)" if more else ""
        raise InvalidClusterFileError(error.mistakes[0] + others) from error
    line_of = line_finder(text)
    return ClusterFile(
        file=str(path),
        backend=form.backend,
        sync_every=form.sync_every,
        entries=tuple(
            _entry(node, {key: line_of(("nodes", number, key)) for key in node.model_fields_set})
            for number, node in enumerate(form.nodes)
        ),
        lines={key: line_of((key,)) for key in form.model_fields_set},
    )


def _entry(node: WrittenNode, lines: dict[str, int]) -> MachineEntry:
    return MachineEntry(
        address=node.host,
        name=node.name,
        device_type=node.device_type or "",
        memory_gb=node.memory_gb,
        chip=node.chip,
        role=node.role or "",
        connection_type=node.connection_type or "",
        ssh_user=node.ssh_user,
        lines=lines,
    )


def _says_nothing(text: str) -> bool:
    return all(line.lstrip()[:1] in {"", "#"} for line in text.splitlines())


def _read(path: Path) -> str:
    """Return the text, or as much of it as shows that it is too much."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_TEXT_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidClusterFileError(f"{path} can't be read: {reason}") from error
