"""The command's fields about a generator: a folder, an artifact, a model of the hub, or a server.

Owns that distinction, and the checks that are made before anything starts. Doesn't know how a cycle
uses the generator.
"""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.hub.model import found
from jupiterd.ctl.hub.names import hub_name
from jupiterd.ctl.output.console import notice
from jupiterd.ctl.sources.folder_diagnosis import check_that_it_is_no_adapter, index_of
from jupiterd.ctl.sources.model_source import config_of
from jupiterd.ctl.sources.server_trial import MAX_NAMED, check_answers
from jupiterd.cycle.base.model_files import missing_files
from jupiterd.cycle.domain.generator import (
    HINT,
    check_address,
    check_key_name,
    is_server,
    server_parts,
)
from jupiterd.cycle.training.architectures import check_that_it_writes
from jupiterd.errors import (
    GeneratorRefusedError,
    GeneratorUnreachableError,
    NotFoundError,
    UsageError,
)
from jupiterd.model_folder import check_links
from jupiterd.weight_files import check_model_files

_is_artifact = re.compile(r"[0-9a-f]{64}").fullmatch

ASK_TIMEOUT_S = 10.0
MAX_LISTED_BYTES = 1 << 20


def generator_arguments(text: str, fetches: Fetches, key_name: str = "") -> dict[str, Any]:
    """Return the command's fields about a generator.

    Args:
        text: the generator as the user named it; empty: none.
        fetches: gets the model if it still has to be downloaded from the hub.
        key_name: the environment variable that holds a server's key.

    Raises:
        GeneratorUnreachableError: no server answers there.
        NotFoundError: there is no such folder, or the server has no such model.
        UsageError: it can't be a generator, or a key is given without a server.
        JupiterError: it is a model of the hub that can't be downloaded, or the server refuses.
    """
    check_key_name(key_name)
    if not text:
        return {}
    if is_server(text):
        return {"generator": _server(text, key_name)}
    if key_name:
        raise UsageError("only a server is shown a key", HINT)
    if _is_artifact(text):
        return {"generator": {"name": text[:8], "artifact": text}}
    folder = Path(text).expanduser()
    if (wanted := hub_name(text)) and not folder.exists():
        model = found(wanted, is_trained=False)
        config, said = config_of(model.folder)
        check_that_it_writes(text, said)
        fetches.add(model, check_model_files)
        name, where = str(model.listing.name), model.folder
        _check_that_it_is_whole(text, fetches.names(where), where)
    else:
        where = _checked(folder)
        config, name = config_of(where)[0], where.name
    return {
        "generator": {"name": name},
        "generator_folder": str(where),
        "generator_config": config,
    }


def judge_arguments(text: str, fetches: Fetches, key_name: str) -> dict[str, Any]:
    """Return the command's fields about a judge; raise as `generator_arguments` does."""
    key = key_name if is_server(text) else ""
    arguments = {"generator": {}, **generator_arguments(text, fetches, key)}
    return {name.replace("generator", "judge"): value for name, value in arguments.items()}


def _checked(folder: Path) -> Path:
    where = folder.resolve()
    if not where.is_dir():
        raise NotFoundError(f"{folder} is no folder on this machine", HINT)
    check_that_it_is_no_adapter(where)
    check_links(where)
    _check_that_it_is_whole(str(folder), [path.name for path in where.iterdir()], where)
    check_model_files(where)
    check_that_it_writes(where.name, config_of(where)[1])
    return where


def _check_that_it_is_whole(named: str, names: Collection[str], folder: Path) -> None:
    if missing := missing_files(names, index_of(folder)):
        raise UsageError(
            f"{named} is no whole model: it lacks {', '.join(missing)}",
            "a generator is a Hugging Face folder with config.json, tokenizer.json and safetensors",
        )


def _server(text: str, key_name: str) -> dict[str, Any]:
    url, model = server_parts(text)
    check_address(url, model or "any")
    listed = _models_at(url, may_refuse=not key_name)
    if not model and len(listed) == 1:
        model = listed[0]
    if not model:
        named = f"; it has {', '.join(listed[:MAX_NAMED])}" if listed else ""
        raise UsageError(f"{url} doesn't say which model{named}", f"write {url}#MODEL")
    if not key_name:  # a machine that has the key tries the server itself
        notice(check_answers(url, model, listed))
    found = {"name": model, "url": url, "model": model, "api_key_env": key_name}
    return {name: value for name, value in found.items() if value}


def _models_at(url: str, *, may_refuse: bool) -> list[str]:
    """Return the models that a server lists; empty: no list, which some working servers lack.

    Sends no key, because a domain file may name any address.

    Raises:
        GeneratorRefusedError: it requires a key, and `may_refuse` is set.
        GeneratorUnreachableError: no server answers.
    """
    import httpx

    try:
        reply = httpx.get(f"{url}/models", timeout=ASK_TIMEOUT_S)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.InvalidURL) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise GeneratorUnreachableError(
            f"{url} can't be reached from this machine: {reason}", "look whether the server runs"
        ) from error
    except httpx.HTTPError:
        return []
    if may_refuse and reply.status_code in {401, 403}:
        raise GeneratorRefusedError(f"{url} asks for a key: HTTP {reply.status_code}")
    return _named_in(reply.content) if reply.status_code == httpx.codes.OK.value else []


def _named_in(content: bytes) -> list[str]:
    try:
        rows: Any = json.loads(content[:MAX_LISTED_BYTES])["data"]
        return [str(row["id"]) for row in rows]
    except (ValueError, KeyError, TypeError):
        return []
