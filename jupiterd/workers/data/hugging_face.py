"""Documents of a Hugging Face data set, streamed: nothing is kept that isn't trained on.

Owns the way to the library and what its errors mean. Doesn't know tokens, or what is held out.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from jupiterd.cycle.run_settings import DataSettings
from jupiterd.errors import EmptySourceError, MissingExtraError, SourceUnreachableError, UsageError

INSTALL = "pip install datasets on one of the machines, or give it a folder of text"


def documents(settings: DataSettings) -> Iterator[str]:
    """Yield every text that isn't blank.

    Raises:
        MissingExtraError: the library isn't installed.
        SourceUnreachableError: there is no way to it just now.
        UsageError: the subset, the split or the field isn't there.
        EmptySourceError: there is no such data set, or no row has any text.
    """
    found = 0
    for row in rows(settings.path, settings.subset, settings.split):
        if settings.field not in row:
            raise UsageError(
                f"{settings.path} has no field {settings.field}",
                f"--field takes one of: {', '.join(map(str, row))}",
            )
        text = row[settings.field]
        if isinstance(text, str) and text.strip():
            found += 1
            yield text
    if not found:
        raise EmptySourceError(f"{settings.path} has no text in its field {settings.field}")


def rows(path: str, subset: str, split: str, revision: str = "") -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a data set as they come over the network.

    Raises:
        MissingExtraError: the library isn't installed.
        SourceUnreachableError: there is no way to it just now.
        UsageError: the subset or the split isn't there.
        EmptySourceError: there is no such data set.
    """
    try:
        from datasets import (  # pyright: ignore[reportMissingImports] - an extra of its own
            load_dataset,  # pyright: ignore[reportUnknownVariableType]
        )
    except ModuleNotFoundError as error:
        raise _missing() from error
    try:
        stream: Any = load_dataset(
            path, subset or None, split=split, streaming=True, revision=revision or None
        )
        yield from stream
    except ValueError as error:  # an unknown split or subset; the message lists those there are
        raise UsageError(f"{path}: {_first_line(error)}", "see --subset, --split") from error
    except FileNotFoundError as error:
        raise _no_such(path, error) from error
    except _no_way() as error:
        raise SourceUnreachableError(f"{path} can't be had: {_first_line(error)}") from error


def commit_of(path: str, revision: str = "") -> str:
    """Return the commit that a data set's branch or tag (empty: the default branch) is at.

    Raises:
        MissingExtraError: the library isn't installed.
        SourceUnreachableError: there is no way to it just now.
        EmptySourceError: there is no such data set.
    """
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
    except ModuleNotFoundError as error:
        raise _missing() from error
    try:
        return str(HfApi().dataset_info(path, revision=revision or None).sha)
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise _no_such(path, error) from error
    except (*_no_way(), RuntimeError, ValueError) as error:  # or what answers isn't the hub
        raise SourceUnreachableError(f"{path} can't be had: {_first_line(error)}") from error


def _no_way() -> tuple[type[Exception], ...]:
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
