"""The daemon's settings and where each comes from.

Owns the names, defaults and the order flag, environment, jupiter.yaml, default. Read once at start,
never at import. What reads a file is loaded only where there is one: it takes 11 MB for good.
"""

import os
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from jupiterd.cluster.ledger.tokens import parse_token
from jupiterd.cluster.planning.cluster_file_policy import ClusterFile
from jupiterd.cluster.planning.rank_placement import CPU
from jupiterd.cluster.serving.engine_choice import AnsweringEngine
from jupiterd.cluster.values.severity import Severity
from jupiterd.cycle.base.key_hosts import KeyHosts, read_key_hosts
from jupiterd.daemon.runtime.address_text import DEFAULT_PORT, HOST_NAME, parse_address
from jupiterd.daemon.runtime.webhook import Form, WebhookUrl
from jupiterd.errors import InvalidSettingError, UsageError
from jupiterd.locations import default_state_dir
from jupiterd.ports import Address
from jupiterd.processes.rank_variables import read_rank_variables
from jupiterd.token_input import token_from, token_in

if TYPE_CHECKING:
    from pydantic import BaseModel

"""Where jupiterd listens by default, so that `--peer HOST` needs no port."""

ENVIRONMENT_PREFIX = "JUPITER_"

MAX_NAME_CHARACTERS = 64

LIST_SEPARATOR = ","

LOOPBACK = "127.0.0.1"

SERVE_PORT = 47480
"""Where models answer by default, beside the daemon's own port."""

CLUSTER_FILE = "cluster.yaml"
"""In the state folder, where no other one is named."""

"""Of a host, or a scope."""

YES, NO = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})

GROUPS = ("alerts", "serve")
"""In jupiter.yaml the settings that begin so stand below that key, without it."""

Choice = TypeVar("Choice", bound=StrEnum)

Reader = Callable[[object], object]
"""Returns a value as it was meant, from any source; raises ValueError with what was expected."""


class Kept(StrEnum):
    """What the frozen matrices beside an adapter are kept in."""

    NONE = "none"
    FOUR_BITS = "4bit"
    EIGHT_BITS = "8bit"


def _text(least: int, most: int) -> Reader:
    def read(value: object) -> str:
        if isinstance(value, str) and least <= len(value) <= most:
            return value
        raise ValueError(f"expected text of {least} to {most} characters, got {value!r}")

    return read


def _whole(low: int, high: int) -> Reader:
    def read(value: object) -> int:
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        if isinstance(number, int) and not isinstance(number, bool) and low <= number <= high:
            return number
        raise ValueError(f"expected a whole number from {low} to {high}, got {value!r}")

    return read


def _yes_or_no(value: object) -> bool:
    text = str(value).lower()
    if text in YES | NO:
        return text in YES
    raise ValueError(f"expected true or false, got {value!r}")


def _list(value: object) -> tuple[str, ...]:
    parts = value.split(LIST_SEPARATOR) if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise ValueError(f"expected a list, got {value!r}")  # noqa: TRY004 - a wrong value
    found = [_text(0, 255)(part) for part in parts]
    return tuple(text for part in found if (text := str(part).strip()))


def _devices(value: object) -> tuple[str, ...]:
    parts = value if isinstance(value, list | tuple | str) else [value]
    found = _list(parts if isinstance(parts, str) else list(map(_digits, parts)))
    for text in found:
        if text != CPU and not (text.isascii() and text.isdecimal()):
            raise ValueError(f"expected cpu or numbers of CUDA devices, got {text!r}")
    return found


def _digits(value: object) -> object:
    """Return a whole number as its digits: jupiter.yaml may hold either."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _scope(value: object) -> str:
    name = str(_text(0, 64)(value))
    if name and not HOST_NAME.fullmatch(name):
        raise ValueError(f"expected letters, digits, dots, - and _, got {name!r}")
    return name


def _peers(value: object) -> tuple[str, ...]:
    found = _list(value)
    for text in found:
        parse_address(text)
    return found


def _listening(value: object) -> Address | None:
    """Return where to listen; a port alone means on the loopback interface, nothing: nowhere."""
    if isinstance(value, Address) or value in ("", None):
        return value if isinstance(value, Address) else None
    text = _digits(value)
    if isinstance(text, str) and text.isascii():
        if text.isdecimal() and int(text) < 65536:
            return Address(LOOPBACK, int(text))
        host, _, port = text.rpartition(":")
        if host and port.isdecimal() and (":" not in host or host[0] + host[-1] == "[]"):
            return parse_address(text)
    raise ValueError(f"expected PORT, HOST:PORT or [IPv6]:PORT, got {value!r}")


def _webhook(value: object) -> WebhookUrl | None:
    """Return the address; what is wrong with it is said without it, for it is a secret."""
    if isinstance(value, WebhookUrl) or value in ("", None):
        return value if isinstance(value, WebhookUrl) else None
    if isinstance(value, str):
        return WebhookUrl(value)
    raise ValueError("expected an address that begins with https:// or http://")


def _one_of(kind: type[Choice]) -> Callable[[object], Choice]:
    def read(value: object) -> Choice:
        try:
            return kind(str(value).lower())
        except ValueError:
            raise ValueError(f"expected one of {', '.join(kind)}, got {value!r}") from None

    return read


def _folder(value: object) -> Path:
    """Return a folder in full: the daemon works in its own, where a relative path is another."""
    if value == "":
        raise ValueError("expected a folder, and it is empty: is a variable of the shell unset?")
    if isinstance(value, str | Path):
        try:
            return Path(value).expanduser().absolute()
        except RuntimeError:  # there is no such user
            raise ValueError(
                f"expected a folder, got {value!r}: nobody is called so here"
            ) from None
    raise ValueError(f"expected a folder, got {value!r}")


def _folders(value: object) -> tuple[Path, ...]:
    folders = value if isinstance(value, tuple) else _list(value)
    found = tuple(map(_folder, cast("tuple[object, ...]", folders)))
    if others := [str(each) for each in folders if not str(each).startswith(("/", "~"))]:
        raise ValueError(f"expected whole paths, or such as begin with ~/, got {others[0]!r}")
    return found


def _cluster(value: object) -> ClusterFile:
    if isinstance(value, ClusterFile):
        return value
    if isinstance(value, str | Path) and str(value):
        from jupiterd.daemon.runtime.cluster_file import read_cluster_file

        return read_cluster_file(Path(value).absolute())
    raise ValueError(f"expected a file, got {value!r}")


def _adapter(value: object) -> str:
    """Return an adapter's words, checked; nothing: all weights are trained."""
    text = str(_text(0, 256)(value))
    if not text:
        return ""
    from jupiterd.cycle.training.adapters.adapter import parse_adapter

    try:
        parse_adapter(text)
    except UsageError as error:
        raise ValueError(error.message.removeprefix("--lora: ")) from error
    return text


def _join_token(value: object) -> str:
    """Return the token that stands there, or in the file of that name."""
    text = str(value or "")
    try:
        if text.startswith(("/", "~")):
            text = token_in(Path(text).expanduser())
        return str(parse_token(text)) if text else ""
    except UsageError as error:
        raise ValueError(error.message) from error


def _read_by(read: Reader, **default: Any) -> Any:  # noqa: ANN401 - as `dataclasses.field` has it
    return field(metadata={"read": read}, **default)


@dataclass(frozen=True)
class Settings:
    """Everything that people configure of the daemon."""

    name: str = _read_by(_text(1, MAX_NAME_CHARACTERS), default_factory=platform.node)
    """The node's name in tables and logs; not its identity. Default: the host name; with --local
    also that of a state folder that was named, as there may be several on one machine."""

    state_dir: Path = _read_by(_folder, default_factory=default_state_dir)  # noqa: RUF009
    """The folder with key, ledger, artifacts and logs."""

    port: int = _read_by(_whole(0, 65535), default=DEFAULT_PORT)
    """TCP port for other nodes; 0 lets the system choose one, which mDNS announces."""

    interface: tuple[str, ...] = _read_by(_list, default=())
    """Network interfaces to use; default: all."""

    peer: tuple[str, ...] = _read_by(_peers, default=())
    """HOST, HOST:PORT or [IPv6]:PORT of other nodes, where multicast doesn't reach them."""

    cluster: ClusterFile = _read_by(_cluster, default_factory=ClusterFile)  # noqa: RUF009
    """What a cluster file says of the machines; default: cluster.yaml in the state folder, else
    config/cluster.yaml below the folder that the daemon was started in."""

    scope: str = _read_by(_scope, default="")
    """Find by multicast only daemons of the same scope; default: those without one."""

    join: str = _read_by(_join_token, default="")
    """A join token of the cluster that this node is to be in, and of no other; or the whole path of
    a file that holds it. On the command line a file, or - for the standard input."""

    closed: bool = _read_by(_yes_or_no, default=False)
    """A cluster that this node founds lets nobody in unless somebody opens it or approves them."""

    trust_lan: bool = _read_by(_yes_or_no, default=False)
    """While this node leads, whoever is on the network may join at any time."""

    threads: int = _read_by(_whole(0, 4096), default=0)
    """Threads that each worker process computes with; 0 shares the cores out among them."""

    checkpoint_every_s: int = _read_by(_whole(0, 86400), default=0)
    """Seconds of training that may be lost with this machine where no other trains beside it; 0: 30
    s, and longer for models larger than 100m: no disk gets more than 50 MB/s for it."""

    devices: tuple[str, ...] = _read_by(_devices, default=())
    """Where to train, one rank each: cpu, cpu,cpu or 0,1; default: all CUDA devices, or the CPU."""

    allow_scripts: bool = _read_by(_yes_or_no, default=False)
    """Members may run scripts of theirs here, as the user that runs this daemon."""

    gang_encryption: bool = _read_by(_yes_or_no, default=False)
    """Trainings and cycles that are started on this machine encrypt what ranks send each other,
    unless `--gang-encryption off` is given."""

    quantize: Kept = _read_by(_one_of(Kept), default=Kept.NONE)  # noqa: RUF009
    """What adapters that are asked for on this machine (`--lora`) keep the model's own matrices in,
    unless `--quantize` is given: none, 4bit or 8bit."""

    lora: str = _read_by(_adapter, default="")
    """Trainings and cycles that are started on this machine and begin with given weights train an
    adapter beside them, in the words of `--lora`, such as rank=16,alpha=32; `--lora off` trains all
    weights. Default: all weights are trained."""

    api_keys: KeyHosts = _read_by(read_key_hosts, default_factory=KeyHosts)  # noqa: RUF009
    """The host that each of this machine's keys may be shown to, and no other, over https:
    {OPENAI_API_KEY: https://api.openai.com}. HF_TOKEN goes to huggingface.co unless it is here."""

    env: Mapping[str, str] = _read_by(read_rank_variables, default_factory=dict[str, str])
    """Variables for the ranks that train here: NCCL_*, GLOO_* and CUDA_* alone, such as
    {NCCL_IB_HCA: mlx5_0}. They count more than what is found out for them."""

    readable_folders: tuple[Path, ...] = _read_by(_folders, default=())
    """Folders of this machine that work of any member may read text and tokenizers from. Others
    are read where somebody names them on this machine's own command line."""

    bulk_mbit_per_s: int = _read_by(_whole(0, 1_000_000), default=0)
    """Artifacts that this node sends to others take no more than that, in Mbit/s; 0: no limit."""

    bulk_share_percent: int = _read_by(_whole(1, 100), default=50)
    """Of the time, in %: what artifacts have the link for while a gang trains on this node."""

    store_gib: int = _read_by(_whole(0, 1 << 20), default=0)
    """Artifacts may take so many GiB before none is fetched any more; 0: no limit."""

    free_disk_mib: int = _read_by(_whole(0, 1 << 30), default=1024)
    """Of the disk stays free when artifacts are fetched, in MiB, or 5 % of it if that is less."""

    rounds_kept: int = _read_by(_whole(1, 1 << 20), default=2)
    """Rounds of each cycle stored whole; of older ones intermediate artifacts are removed."""

    metrics: Address | None = _read_by(_listening, default=None)  # noqa: RUF009
    """Where Prometheus may fetch this node's metrics: PORT or HOST:PORT; default: nowhere."""

    alerts_webhook: WebhookUrl | None = _read_by(_webhook, default=None)  # noqa: RUF009
    """Where alerts are sent, by one node of the cluster; a secret. Default: nowhere."""

    alerts_form: Form = _read_by(_one_of(Form), default=Form.AUTO)  # noqa: RUF009
    """What is expected there: json, ntfy, slack or discord; auto: what its host speaks."""

    alerts_minimum_severity: Severity = _read_by(_one_of(Severity), default=Severity.INFO)  # noqa: RUF009
    """Alerts that are less grave aren't sent: info, warning or error."""

    serve_models: tuple[str, ...] = _read_by(_list, default=())
    """Models that answer on a port, as OpenAI's API has it; default: none, promoted where another
    setting of serve is given."""

    serve_port: int = _read_by(_whole(0, 65535), default=SERVE_PORT)
    """TCP port of that endpoint; 0 lets the system choose."""

    serve_host: str = _read_by(_text(1, 255), default=LOOPBACK)
    """Where it listens; beyond this machine only with a token."""

    serve_token: str = _read_by(_text(0, 4096), default="")
    """The file with the token that clients must send; default: none, on this machine alone."""

    serve_cors: tuple[str, ...] = _read_by(_list, default=())
    """Sites whose pages may ask it, such as https://chat.example.org; *: all. Default: none."""

    serve_pinned: bool = _read_by(_yes_or_no, default=False)
    """It answers on a GPU whether a training wants that or not."""

    serve_engine: AnsweringEngine = _read_by(_one_of(AnsweringEngine), default=AnsweringEngine.AUTO)  # noqa: RUF009
    """What models are loaded into here: auto (the first that can), llama.cpp, mlx, vllm or
    transformers."""

    local: bool = _read_by(_yes_or_no, default=False)
    """Use the loopback interface only, for several daemons on one machine."""

    @property
    def serves(self) -> bool:
        """Say whether models answer on a port: whether anything of serve was asked for."""
        own = (each for each in fields(self) if each.name.startswith("serve_"))
        return any(getattr(self, each.name) != each.default for each in own)

    def peer_addresses(self) -> tuple[Address, ...]:
        """Return the static peers: those named one by one, and the hosts of the cluster file."""
        hosts = (entry.address for entry in self.cluster.entries if entry.address)
        return tuple(dict.fromkeys(parse_address(text) for text in (*self.peer, *hosts)))


_HINTS: Mapping[str, str] = {"flag": "jupiterd --help lists every option"}
"""Source -> where its allowed values are described; for others that is the file of settings."""

_READERS: Mapping[str, Reader] = {each.name: each.metadata["read"] for each in fields(Settings)}


def load_settings(
    flags: Mapping[str, Any], environment: Mapping[str, str], config: Path | None
) -> tuple[Settings, dict[str, str]]:
    """Return the settings, and for each the source it was taken from.

    Args:
        flags: values given on the command line; those not given are absent.
        environment: usually `os.environ`.
        config: jupiter.yaml, where one was named.

    Raises:
        InvalidSettingError: a value is wrong or a key unknown; the source is named.
        UsageError: no join token can be read where the flag says.
        InvalidClusterFileError: the cluster file is wrong.
    """
    if "join" in flags:
        flags = {**flags, "join": token_from(str(flags["join"]), "--join")}
    values: dict[str, Any] = {}
    sources = dict.fromkeys(_READERS, "default")
    from_environment = {
        name: environment[ENVIRONMENT_PREFIX + name.upper()]
        for name in _READERS
        if ENVIRONMENT_PREFIX + name.upper() in environment
    }
    for source, found in (
        (str(config), _read(config) if config else {}),
        ("environment", from_environment),
        ("flag", flags),
    ):
        for name, value in found.items():
            values[name] = _checked(name, value, source)
            sources[name] = source
    settings = Settings(**values)
    if settings.local and "state_dir" in values and "name" not in values:
        own = f"{settings.name}-{settings.state_dir.name}"
        settings = replace(settings, name=own[:MAX_NAME_CHARACTERS])
    lying = (settings.state_dir / CLUSTER_FILE, Path("config", CLUSTER_FILE))
    found_file = next(filter(_is_there, lying), None)
    if "cluster" not in values and found_file is not None:
        sources["cluster"] = str(found_file.absolute())
        settings = replace(settings, cluster=_cluster(found_file))
    return settings, sources


def _is_there(path: Path) -> bool:
    """Say whether there is a file; opening the state folder reports why nobody may look."""
    try:
        return path.exists()
    except PermissionError:
        return False


def _checked(name: str, value: object, source: str) -> object:
    try:
        return _READERS[name](value)
    except ValueError as error:
        cause = error.__cause__
        hint = cause.hint if isinstance(cause, UsageError) else _HINTS.get(source, "")
        raise InvalidSettingError(f"{name} (from {source}): {error}", hint) from error


def environment() -> Mapping[str, str]:
    """Return the process environment; the only place where the daemon reads it."""
    return os.environ


def _read(config: Path) -> dict[str, Any]:
    from jupiterd.cycle.base.yaml_text import YamlMistakesError, parse_yaml

    try:
        text = config.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidSettingError(f"{config} can't be read: {reason}") from error
    if all(line.lstrip()[:1] in {"", "#"} for line in text.splitlines()):
        return {}
    model = _model()
    try:
        read = parse_yaml(text, str(config), model)
    except YamlMistakesError as error:
        raise InvalidSettingError(error.mistakes[0]) from error
    return dict(_flat(read))


def _model() -> "type[BaseModel]":
    """Return what jupiter.yaml must look like: a key for each setting, some of them in groups."""
    from pydantic import BeforeValidator, ConfigDict, PlainValidator, create_model

    strict = ConfigDict(extra="forbid")
    rows: dict[str, Any] = {
        name: (Annotated[Any, PlainValidator(read)], None) for name, read in _READERS.items()
    }
    for group in GROUPS:
        begin = f"{group}_"
        inner = {n.removeprefix(begin): rows.pop(n) for n in [*rows] if n.startswith(begin)}
        model = create_model(group.capitalize(), __config__=strict, **inner)
        rows[group] = (Annotated[model, BeforeValidator(_keys_and_values)], None)
    return create_model("Settings", __config__=strict, **rows)


def _keys_and_values(document: object) -> object:
    """Return it; what stands there instead isn't shown, for it may be a secret."""
    if not isinstance(document, Mapping):
        raise ValueError("expected keys and values below it")  # noqa: TRY004 - a wrong value
    return cast("object", document)


def _flat(read: "BaseModel", begin: str = "") -> Iterator[tuple[str, Any]]:
    for name in read.model_fields_set:
        value = getattr(read, name)
        if name in GROUPS:
            yield from _flat(value, f"{name}_")
        else:
            yield begin + name, value
