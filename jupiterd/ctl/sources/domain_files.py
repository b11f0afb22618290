"""Finding and reading domain files.

Owns the folders that are searched for a domain, and the error if none has it.
Doesn't check what a file says.
"""

import difflib
from dataclasses import dataclass
from pathlib import Path

from jupiterd.errors import InvalidDomainError, NotFoundError, UsageError
from jupiterd.locations import config_folder

SUFFIXES = (".yaml", ".yml")

OWN_FOLDERS = (Path(), Path("config", "domains"))
"""The folders that are searched for the user's own domains, in this order."""


LOOKED_AT_CHARS = 1 << 16
"""How many characters of a file are read to see whether it is a domain file."""


@dataclass(frozen=True)
class DomainFile:
    """The path and text of a domain file."""

    path: Path
    text: str
    called: str = ""
    """The domain's name as the user gave it; empty if the user gave the file."""


def shipped_domains() -> dict[str, Path]:
    """Return Jupiter's own domain files by domain name, without the template."""
    folder = config_folder() / "domains"
    return {
        path.stem: path for path in sorted(folder.glob("*.yaml")) if not path.stem.startswith("_")
    }


def own_domains() -> dict[str, Path]:
    """Return the domain files of the current folder, and of config/domains below it, by name.

    Such folders hold other YAML files, too: a file counts if it has `data_sources`. In a checkout
    of Jupiter, the domains that come with it don't count.
    """
    found: dict[str, Path] = {}
    shipped = (config_folder() / "domains").resolve()
    for folder in reversed([each for each in OWN_FOLDERS if each.resolve() != shipped]):
        for path in sorted(path for suffix in SUFFIXES for path in folder.glob(f"*{suffix}")):
            if not path.stem.startswith("_") and _says_sources(path):
                found[path.stem] = path
    return dict(sorted(found.items()))


def read_domain_file(name_or_file: str) -> DomainFile:
    """Return the named file, or the named domain's file: the user's own comes before Jupiter's.

    A name is searched as NAME.yaml (or .yml) in the current folder, then in config/domains below
    it, then among the domains that come with Jupiter.

    Raises:
        NotFoundError: there is no such domain or file.
        InvalidDomainError: the file can't be read, or isn't UTF-8.
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


def only_domain() -> str:
    """Return the domain to use if none is named: the only one of this folder.

    Raises:
        UsageError: there are several, or none; its hint says what to type.
    """
    own = own_domains()
    if len(own) == 1:
        return next(iter(own))
    if own:
        raise UsageError(
            f"several domains are here: {', '.join(own)}",
            f"say which one: --domain {next(iter(own))}",
        )
    raise UsageError(
        f"no domain is named, and none is here; Jupiter comes with {', '.join(shipped_domains())}",
        "say which one, such as --domain python, or write one of your own documents: "
        "jupiterctl domain new NAME --from FOLDER",
    )


def _located(name_or_file: str) -> Path:
    if _is_file(name_or_file):
        return Path(name_or_file)
    if (own := _own(name_or_file)) is not None:
        return own
    domains = shipped_domains()
    if name_or_file in domains:
        return domains[name_or_file]
    close = difflib.get_close_matches(name_or_file, [*own_domains(), *domains], n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    raise NotFoundError(
        f"there is no domain {name_or_file!r}", f"{meant}jupiterctl domain list shows the domains"
    )


def _is_file(name_or_file: str) -> bool:
    return "/" in name_or_file or name_or_file.endswith(SUFFIXES)


def _own(name: str) -> Path | None:
    """Return the user's own file of a domain, or None."""
    paths = (folder / f"{name}{suffix}" for folder in OWN_FOLDERS for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def _says_sources(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return "\ndata_sources:" in file.read(LOOKED_AT_CHARS)
    except OSError:
        return False
