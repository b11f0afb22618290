"""Finding and reading domain files.

Owns where a domain's name leads and what to say when it leads nowhere.
Doesn't know what a file must say.
"""

import difflib
from dataclasses import dataclass
from pathlib import Path

from jupiterd.errors import InvalidDomainError, NotFoundError
from jupiterd.locations import config_folder

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class DomainFile:
    """The text of a domain file, as it lies on the disk."""

    path: Path
    text: str
    called: str = ""
    """The domain's name as it was asked for; empty where it was the file that was named."""


def shipped_domains() -> dict[str, Path]:
    """Return the files in config/domains by their names, without the template."""
    folder = config_folder() / "domains"
    return {
        path.stem: path for path in sorted(folder.glob("*.yaml")) if not path.stem.startswith("_")
    }


def read_domain_file(name_or_file: str) -> DomainFile:
    """Return the file itself, or that of a domain: the user's own comes before Jupiter's.

    A name is looked for as NAME.yaml in the current folder, then in config/domains below it, then
    among the domains that come with Jupiter.

    Raises:
        NotFoundError: there is no such domain or file.
        InvalidDomainError: the file can't be read as text.
    """
    path = _located(name_or_file)
    try:
        called = "" if _is_file(name_or_file) else name_or_file
        return DomainFile(path, path.read_text(encoding="utf-8"), called)
    except FileNotFoundError as error:
        raise NotFoundError(
            f"the domain file {path} doesn't exist", "jupiterctl domain list shows the domains"
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidDomainError(
            f"{path}: expected text in UTF-8, got other bytes at byte {error.start}"
        ) from error
    except OSError as error:
        raise InvalidDomainError(
            f"{path} can't be read: {error.strerror or error}",
            "give it a file of yours, or a name that jupiterctl domain list shows",
        ) from error


def _located(name_or_file: str) -> Path:
    if _is_file(name_or_file):
        return Path(name_or_file)
    if (own := _own(name_or_file)) is not None:
        return own
    domains = shipped_domains()
    if name_or_file in domains:
        return domains[name_or_file]
    close = difflib.get_close_matches(name_or_file, domains, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    raise NotFoundError(
        f"there is no domain {name_or_file!r}", f"{meant}jupiterctl domain list shows the domains"
    )


def _is_file(name_or_file: str) -> bool:
    return "/" in name_or_file or name_or_file.endswith(SUFFIXES)


def _own(name: str) -> Path | None:
    """Return the user's own file of a domain, or None."""
    folders = (Path(), Path("config", "domains"))
    paths = (folder / f"{name}{suffix}" for folder in folders for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)
