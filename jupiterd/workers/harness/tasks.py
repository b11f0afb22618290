"""Which tasks of lm-evaluation-harness are meant, and whether their data are there.

Owns the names, the folder that relative paths start from, and what people are told of tasks that
can't be had. Doesn't know models.
"""

import difflib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from blake3 import blake3

from jupiterd.cycle.questions.task_scores import FoundTask
from jupiterd.errors import (
    EmptySourceError,
    MissingExtraError,
    NotFoundError,
    SourceUnreachableError,
    UsageError,
)

NAMES, STARTED_IN, FOLDER = "names", "started_in", "tasks"

INSTALL_MORE: Final = "pip install 'lm_eval[tasks]'"

_SHOWN_CHARS: Final = 200
_IN_HUB: Final = "its data come from the Hugging Face hub once: ask where that can be reached"
_HERE: Final = "data files are looked for from here, in the folder, and beside the folder"


@dataclass(frozen=True)
class AskedTask:
    """What is called by one name, a task, a group or a tag: the harness's tasks, by their names."""

    name: str
    tasks: Mapping[str, Any]

    def found(self, surroundings: bytes) -> FoundTask:
        """Return it without the harness; `surroundings`: a hash of what else decides it."""
        each = [_content(task) for _, task in sorted(self.tasks.items())]
        documents = sum(len(task.eval_docs) for task in self.tasks.values())
        return FoundTask(self.name, blake3(surroundings + b"".join(each)).hexdigest(), documents)


@dataclass(frozen=True)
class TaskBook:
    """The tasks that there are."""

    manager: Any
    """The harness's `TaskManager`."""
    folder: Path | None

    @classmethod
    def open(cls, folder: Path | None, started_in: Path) -> "TaskBook":
        """Read the harness's own tasks, or those of a folder; go where its data files are.

        Raises:
            EmptySourceError: the folder has none.
        """
        from lm_eval.tasks import TaskManager  # pyright: ignore[reportMissingImports]

        if folder is None:
            return cls(TaskManager(), None)
        manager: Any = TaskManager(include_path=str(folder), include_defaults=False)
        if not manager.all_tasks:
            raise EmptySourceError(
                f"{folder.name} has no tasks of lm-evaluation-harness",
                "a task is a .yaml file with `task:`, `dataset_path:` and `output_type:`",
            )
        configs = [entry.cfg for entry in manager.task_index.values()]
        os.chdir(_data_folder(configs, (started_in, folder, folder.parent)))
        return cls(manager, folder)

    def names(self) -> list[str]:
        """Return what a folder is about: its groups, and tasks that are in none."""
        groups: list[str] = list(self.manager.all_groups)
        if not groups:
            return list(self.manager.all_subtasks)
        loaded = self._loaded(groups)
        inner = {name for names in loaded["group_map"].values() for name in names}
        alone = [name for name in self.manager.all_subtasks if name not in loaded["tasks"]]
        return [*(name for name in groups if name not in inner), *alone]

    def asked(self, names: Sequence[str]) -> list[AskedTask]:
        """Return the tasks of these names, whose data are read.

        Raises:
            NotFoundError: one isn't known.
            SourceUnreachableError: its data can't be had.
            UsageError: it needs what Jupiter doesn't do, or two have the same task.
        """
        for name in names:
            self._check_known(name)
        found = [AskedTask(name, self._loaded([name])["tasks"]) for name in names]
        _check_apart(found)
        for each in found:
            for name, task in each.tasks.items():
                _check_usable(name, task)
        return found

    def surroundings(self) -> bytes:
        """Return a hash of the harness's version, and of a folder's YAML and Python."""
        digest = blake3(version("lm_eval").encode())
        files = [] if self.folder is None else sorted(self.folder.rglob("*"))
        for file in files:
            if file.suffix in {".py", ".yaml"} and file.is_file():
                digest.update(file.read_bytes())
        return digest.digest()

    def _check_known(self, name: str) -> None:
        known: Sequence[str] = self.manager.all_tasks
        if name in known:
            return
        near = difflib.get_close_matches(name, known, 3)
        hint = f"is it {' or '.join(near)}?" if near else "lm_eval ls tasks shows all"
        raise NotFoundError(f"lm-evaluation-harness has no task {name}", hint)

    def _loaded(self, names: Sequence[str]) -> Any:  # noqa: ANN401 - the harness's
        said = names[0] if len(names) == 1 else "the folder's groups"
        try:
            return self.manager.load(list(names))
        except ModuleNotFoundError as error:
            raise MissingExtraError(f"{said} needs {error.name}", INSTALL_MORE) from error
        except Exception as error:
            raise SourceUnreachableError(
                f"{said} can't be read: {_line(error)}", _IN_HUB if self.folder is None else _HERE
            ) from error


def _check_apart(asked: Sequence[AskedTask]) -> None:
    owners: dict[str, str] = {}
    for each in asked:
        for task in each.tasks:
            other = owners.setdefault(task, each.name)
            if other != each.name:
                raise UsageError(
                    f"{task} is in {other} and in {each.name}", "leave one of them out"
                )


def _check_usable(name: str, task: Any) -> None:  # noqa: ANN401 - the harness's
    if getattr(task, "UNSAFE_CODE", False):
        raise UsageError(
            f"{name} runs code that a model writes", "Jupiter doesn't; leave the task out"
        )
    if getattr(task, "MULTIMODAL", False):
        raise UsageError(f"{name} shows pictures", "Jupiter's models read text; leave it out")


def _content(task: Any) -> bytes:  # noqa: ANN401 - the harness's
    """Return a hash of what is asked: the settings, and every document."""
    digest = blake3(_plain(task.dump_config()))
    for document in task.eval_docs:
        digest.update(_plain(document))
    return digest.digest()


def _plain(value: Any) -> bytes:  # noqa: ANN401 - whatever a task holds
    # A function's own text isn't had everywhere; its name and place are.
    return json.dumps(value, sort_keys=True, default=_named).encode()


def _named(value: object) -> str:
    return str(getattr(value, "__qualname__", type(value).__name__))


def _data_folder(configs: Iterable[Mapping[str, Any] | None], places: Sequence[Path]) -> Path:
    """Return the first place from which all data files are found; the first one if none is."""
    files = [file for config in configs for file in _data_files(config or {})]
    relative = [file for file in files if "://" not in file and not Path(file).is_absolute()]
    whole = (place for place in places if all(any(place.glob(file)) for file in relative))
    return next(whole, places[0])


def _data_files(config: Mapping[str, Any]) -> Iterator[str]:
    given: Any = (config.get("dataset_kwargs") or {}).get("data_files")
    for value in given.values() if isinstance(given, Mapping) else [given]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from map(str, value)


def _line(error: Exception) -> str:
    """Return what an error says, in one line."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= _SHOWN_CHARS else f"{said[:_SHOWN_CHARS]} ..."
