"""Imports the weights of somebody's Hugging Face folder for a run.

Owns copying them into this node's store, where every node can fetch them from, with all that came
with them; a tokenizer in an older form gets a `tokenizer.json` beside it. Doesn't know what they
are: no tensor is read here.
"""

import asyncio
import json
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from jupiterd.adapter_folder import (
    ADAPTER_CONFIG,
    BASE_KEY,
    adapter_file,
    base_named_in,
    said_in,
)
from jupiterd.cycle.base.key_hosts import is_loopback
from jupiterd.cycle.base.model_files import (
    FAST_TOKENIZER,
    GENERATOR_FILES,
    INDEX,
    has_tokenizer,
    weight_files,
)
from jupiterd.cycle.data.tokenizer_identity import TokenizerIdentity
from jupiterd.daemon.catalog.brought_tokenizer import brought_tokenizer, converted
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId, NodeId, short
from jupiterd.model_folder import check_links
from jupiterd.protocol.commands.command import PlainMap
from jupiterd.protocol.commands.cycle_commands import StartCycle
from jupiterd.protocol.commands.train_commands import StartTraining
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.disk import written
from jupiterd.store.manifest import is_artifact_id

WEIGHTS = ".safetensors"
"""How the names of their files end."""

_FOLDERS = ("weights_folder", "adapter_folder")

GENERATOR, JUDGE = "generator", "judge"
"""What a model that others made is for."""


class ModelImport:
    """Brings what commands on this machine name into its store."""

    def __init__(self, own: NodeId, store: ArtifactStore, spool: Path) -> None:
        """`spool`: where a copy is laid out before the store takes it."""
        self._own, self._store, self._spool = own, store, spool

    async def bring_weights(self, command: StartTraining) -> StartTraining:
        """Replace the folder that is named by the artifact that holds the model; say its tokenizer.

        Raises:
            CorruptArtifactError: its tokenizer can't be read.
            NotFoundError: this daemon can't read the folder.
            UsageError: a link of it leads out of the folder.
            DiskFullError: there is no room for a copy.
            JupiterError: its tokenizer can't be converted.
        """
        if not command.weights_folder:
            return command
        taken = await self._brought(Path(command.weights_folder))
        identity = await asyncio.to_thread(brought_tokenizer, self._store.path(taken))
        said = plain_identity(identity)
        named = replace(command, weights_folder=None, weights=taken, tokenizer_of_weights=said)
        return await self._bring_adapter(named, taken)

    async def _bring_adapter(self, command: StartTraining, base: ArtifactId) -> StartTraining:
        if not command.adapter_folder:
            return command
        taken = await self._brought_adapter(Path(command.adapter_folder), base)
        return replace(command, adapter_folder=None, adapter=taken)

    async def _brought_adapter(self, folder: Path, base: ArtifactId) -> ArtifactId:
        check_base_of(folder, base)
        return await self._in_spool(folder, partial(self._adapter_taken_in, base))

    async def bring_models(self, command: StartCycle) -> StartCycle:
        """Replace the folders that a cycle names by artifacts: generator, judge and first model.

        Raises:
            NotFoundError: this daemon can't read a folder, or the first model has no tokenizer.
            DiskFullError: there is no room for a copy.
        """
        generator = await self._brought_model(command.generator, command.generator_folder)
        judge = await self._brought_model(command.judge, command.judge_folder)
        named = replace(
            command, generator=generator, generator_folder=None, judge=judge, judge_folder=None
        )
        if command.init is None:
            return named
        return replace(named, init=await self._brought_first(command.init))

    async def _brought_model(self, model: PlainMap | None, folder: str | None) -> PlainMap | None:
        """Return a model that others made with the artifact that its folder has become.

        A server on this machine alone is asked by this node alone.
        """
        if url := str((model or {}).get("url", "")):
            return {**(model or {}), "node": self._own} if is_loopback(url) else model
        if not folder:
            return model
        return {**(model or {}), "artifact": await self._brought(Path(folder))}

    async def _brought_first(self, init: PlainMap) -> PlainMap:
        """Return the model that round 1 begins with, with the artifact of its weights."""
        named = str(init.get("weights_folder") or "")
        beside = str(init.get("adapter_folder") or "")
        rest = {name: value for name, value in init.items() if name not in _FOLDERS}
        if not named:
            return rest
        folder = Path(named)
        await asyncio.to_thread(check_tokenizer, folder)
        taken = await self._brought(folder)
        is_chat = await asyncio.to_thread(_is_talked_to, folder)
        brought = {**rest, "weights": taken, "is_chat": is_chat}
        if not beside:
            return brought
        return {**brought, "adapter": await self._brought_adapter(Path(beside), taken)}

    async def _brought(self, folder: Path) -> ArtifactId:
        return await self._in_spool(folder, self._taken_in)

    async def _in_spool(
        self, folder: Path, take_in: Callable[[Path, Path], ArtifactId]
    ) -> ArtifactId:
        draft = self._spool / secrets.token_hex(8)
        try:
            return await asyncio.to_thread(take_in, folder, draft)
        finally:
            await asyncio.to_thread(shutil.rmtree, draft, ignore_errors=True)

    def _adapter_taken_in(self, base: ArtifactId, folder: Path, draft: Path) -> ArtifactId:
        """Take in an adapter's two files, with the artifact that its base is here as its name."""
        found = check_adapter(folder)
        with written():
            draft.mkdir(mode=0o700)
            for path in found:
                shutil.copyfile(path, draft / path.name)
            said = (said_in(draft) or {}) | {BASE_KEY: base}
            (draft / ADAPTER_CONFIG).write_text(json.dumps(said, indent=2), encoding="utf-8")
        return self._store.ingest(draft)

    def _taken_in(self, folder: Path, draft: Path) -> ArtifactId:
        found = [path for pattern in GENERATOR_FILES for path in sorted(folder.glob(pattern))]
        if not any(path.suffix == WEIGHTS for path in found):
            raise NotFoundError(f"{folder} holds no safetensors that this daemon can read")
        check_links(folder)
        with written():
            draft.mkdir(mode=0o700)
            for path in _without_second_copies(folder, found):
                shutil.copyfile(path, draft / path.name)
        converted(draft)
        return self._store.ingest(draft)


def check_adapter(folder: Path) -> list[Path]:
    """Return the two files of an adapter.

    Raises:
        NotFoundError: this daemon can't read one of them.
        UsageError: a link leads out of the folder.
    """
    found = [folder / ADAPTER_CONFIG, adapter_file(folder)]
    if lacking := [path.name for path in found if not path.is_file()]:
        raise NotFoundError(f"{folder} holds no {lacking[0]} that this daemon can read")
    check_links(folder)
    return found


def check_base_of(adapter: Path, base: ArtifactId) -> None:
    """Raise UsageError where an adapter names its base by its content, and it is another."""
    named = base_named_in(adapter)
    if is_artifact_id(named) and named != base:
        raise UsageError(
            f"the adapter {adapter} is for the weights {short(named)}, not {short(base)}",
            "name the base that it was trained beside: --model, or --init of a cycle",
        )


def plain_identity(identity: TokenizerIdentity | None) -> PlainMap:
    """Return what a command carries of the tokenizer of weights; empty: they have none."""
    return {} if identity is None else identity.to_plain()


def _is_talked_to(folder: Path) -> bool:
    """Say whether a folder has a chat template, which the command may not have seen yet."""
    from jupiterd.cycle.generation.chat_models import CONFIG_FILE, is_talked_to

    config = folder / CONFIG_FILE
    text = config.read_text(encoding="utf-8", errors="replace") if config.is_file() else ""
    return is_talked_to([path.name for path in folder.iterdir()], text)


def check_tokenizer(folder: Path) -> None:
    """Raise NotFoundError where the first model of a cycle has no tokenizer."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else ()
    if not has_tokenizer(names):
        raise NotFoundError(
            f"{folder} holds no {FAST_TOKENIZER}, nor a tokenizer in an older form",
            "a cycle goes on with the tokenizer of its model",
        )


def _without_second_copies(folder: Path, found: Sequence[Path]) -> list[Path]:
    """Leave out the files of weights that no loader reads: Mistral's folders hold all twice.

    All are taken where none has the name that loaders look for.
    """
    index = folder / INDEX
    text = index.read_text(encoding="utf-8", errors="replace") if index.is_file() else ""
    read = weight_files([path.name for path in found], text)
    return [path for path in found if path.suffix != WEIGHTS or not read or path.name in read]
