"""Rows of a Hugging Face data set, streamed: nothing is kept that isn't wanted.

Owns the way to the library and what its errors mean. Doesn't know documents. What strangers packed
may fill the memory, so this runs in a process of its own (`isolated_tables`).
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from gzip import BadGzipFile
from importlib import import_module
from typing import Any

from jupiterd.errors import EmptySourceError, MissingExtraError, SourceUnreachableError, UsageError
from jupiterd.locations import pip_install
from jupiterd.workers.data.skips import SkipReason, UnreadableError

INSTALL = f"{pip_install('datasets')} on one of the machines, or give it a folder of text"

_GONE = (404, 410)
"""What the hub says of a file that it has listed and doesn't have."""


FILES = "files of the data set"
"""The field of the first row where only some files are read: how many there are."""


def rows(
    path: str,
    subset: str,
    split: str,
    revision: str = "",
    required: str = "",
    part: tuple[int, int] | None = None,
) -> Iterator[Mapping[str, Any] | SkipReason]:
    """Yield the rows of a data set as they come over the network, file by file.

    In the place of what can't be read any further of a file stands the reason.

    Args:
        path: its name, or a folder.
        subset: its configuration; empty: the only one.
        split: its own split.
        revision: a branch, a tag or a commit; empty: the newest.
        required: a field that each row must have; empty: none.
        part: (number, of how many) where each n-th file is read; a row with `FILES` is the first.

    Raises:
        MissingExtraError: the library isn't installed, or another that these rows need.
        SourceUnreachableError: there is no way to it just now.
        UsageError: the subset, the split or the field isn't there, or it is a program.
        EmptySourceError: there is no such data set.
    """
    try:
        stream = _opened(path, subset, split, revision)
    except UnreadableError as error:
        yield error.reason
        return
    files = int(stream.num_shards)
    if part is not None:
        yield {FILES: str(files)}
    for number in range(files) if part is None else range(part[0], files, part[1]):
        try:
            for row in stream.shard(files, number):
                _check_field(path, row, required)
                yield row
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - its readers raise anything at all
            yield _why_it_ends(path, error)


def _check_field(path: str, row: Mapping[str, Any], required: str) -> None:
    if required and required not in row:
        raise UsageError(
            f"{path} has no field {required}", f"--field takes one of: {', '.join(map(str, row))}"
        )


def _opened(path: str, subset: str, split: str, revision: str) -> Any:  # noqa: ANN401 - theirs
    try:
        from datasets import (  # pyright: ignore[reportMissingImports] - an extra of its own
            load_dataset,  # pyright: ignore[reportUnknownVariableType]
        )
    except ModuleNotFoundError as error:
        raise _missing() from error
    try:
        return load_dataset(
            path, subset or None, split=split, streaming=True, revision=revision or None
        )
    except FileNotFoundError as error:
        raise _no_such(path, error) from error
    except Exception as error:
        if type(error) is ValueError:  # its text lists the splits or subsets that there are
            raise UsageError(f"{path}: {_first_line(error)}", "see --subset, --split") from error
        if type(error) is RuntimeError:  # a program would have to be run
            raise UsageError(f"{path}: {_first_line(error)}", "take one of plain files") from error
        raise UnreadableError(_why_it_ends(path, error)) from error  # it has looked into a file


def _why_it_ends(path: str, error: Exception) -> SkipReason:
    """Say why no more can be read of a file; raise what isn't the file's fault."""
    response = getattr(error, "response", None)
    if isinstance(error, FileNotFoundError) or getattr(response, "status_code", 0) in _GONE:
        return SkipReason.VANISHED
    if isinstance(error, ImportError):
        raise MissingExtraError(f"{path}: {_first_line(error)}", INSTALL) from error
    if isinstance(error, _connection_errors()) and not isinstance(error, BadGzipFile):
        raise SourceUnreachableError(f"{path} can't be had: {_first_line(error)}") from error
    return SkipReason.OUT_OF_MEMORY if isinstance(error, MemoryError) else SkipReason.BROKEN


def commit_of(path: str, revision: str = "") -> str:
    """Return the commit that a data set's branch or tag (empty: the default branch) is at.

    Raises:
        MissingExtraError: the library isn't installed.
        SourceUnreachableError: there is no way to it just now.
        EmptySourceError: there is no such data set.
    """
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import (
            GatedRepoError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )
    except ModuleNotFoundError as error:
        raise _missing() from error
    try:
        return str(HfApi().dataset_info(path, revision=revision or None).sha)
    except GatedRepoError as error:  # one of those that aren't found
        raise EmptySourceError(
            f"the data set {path} is open to those alone who have agreed to its terms",
            f"agree at huggingface.co/datasets/{path}, and start jupiterd with HF_TOKEN set; a "
            "mirror is shown it where api_keys in jupiter.yaml binds it there",
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise _no_such(path, error) from error
    except (
        *_connection_errors(),
        RuntimeError,
        ValueError,
    ) as error:  # or what answers isn't the hub
        raise SourceUnreachableError(f"{path} can't be had: {_first_line(error)}") from error


def _connection_errors() -> tuple[type[Exception], ...]:
    """Return the errors that mean there is no way there: the hub's library changed its client."""
    found: list[type[Exception]] = [OSError]
    for client in ("httpx", "httpx2"):
        with suppress(ModuleNotFoundError):
            found.append(import_module(client).HTTPError)
    return tuple(found)


def _missing() -> MissingExtraError:
    return MissingExtraError(
        "Hugging Face data sets need the package datasets, which isn't installed", INSTALL
    )


def _no_such(path: str, error: Exception) -> EmptySourceError:
    return EmptySourceError(
        f"there is no data set {path}: {_first_line(error)}",
        "look its name up at huggingface.co/datasets",
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
