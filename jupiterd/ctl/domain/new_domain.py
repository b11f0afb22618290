"""Writes a new domain file from one of Jupiter's templates.

Owns the changes in the copy. Doesn't check the content of domain files.
"""

import re
from pathlib import Path

from jupiterd.ctl.sources.domain_files import shipped_domains
from jupiterd.cycle.text_rules.languages import language_mistake
from jupiterd.errors import ConflictError, JupiterError, UsageError
from jupiterd.locations import config_folder

SCHEMA_FILE = "domain.schema.json"

_NAME = re.compile(r"(?!(true|false|null)$)[a-z][a-z0-9_-]{0,31}")


def write_new_domain(folder: Path, name: str, language: str, *, with_every_key: bool) -> Path:
    """Write NAME.yaml into a folder and return its path.

    Raises:
        ConflictError: the file exists, or Jupiter comes with a domain of that name.
        UsageError: the name or the language isn't valid.
    """
    path = checked_path(folder, name, language)
    shipped = config_folder() / "domains"
    text = (shipped / ("_template.yaml" if with_every_key else "_new.yaml")).read_text("utf-8")
    return written(path, _named(text, name, language, schema_file()))


def schema_file() -> Path:
    """Return the path of the JSON Schema of domain files, for editors."""
    return config_folder() / "domains" / SCHEMA_FILE


def checked_path(folder: Path, name: str, language: str) -> Path:
    """Return the path of a new domain's file.

    Raises:
        ConflictError: the file exists, or Jupiter comes with a domain of that name.
        UsageError: the name or the language isn't valid.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} can't be a domain's name",
            "take up to 32 lower-case letters, digits, - and _, a letter first",
        )
    if language and (mistake := language_mistake(language)):
        raise UsageError(f"--language: {mistake}", "docs/domains.md says which there are")
    if name in shipped_domains():
        raise ConflictError(f"Jupiter comes with a domain {name}", "choose another name")
    path = folder / f"{name}.yaml"
    if path.exists():
        raise ConflictError(f"{path} is there already", "choose another name")
    return path


def _named(text: str, name: str, language: str, schema: Path) -> str:
    """Return the template's text with the new domain's name, language and schema file."""
    changes = [
        (r"^(# yaml-language-server: \$schema=).*$", schema.resolve().as_posix()),
        (r"^(domain: |# domain: ).*$", name),
        (r"^(  salt: ).*$", f"{name}-1"),
        (r"^(    path: ~/)new$", name),
    ]
    if language:
        changes.append((r"^(language: ).*$", language))
    for pattern, value in changes:
        text = re.sub(
            pattern, lambda found, value=value: found[1] + value, text, flags=re.MULTILINE
        )
    return text


def written(path: Path, text: str) -> Path:
    """Write the file, which must not exist yet; return its path.

    Raises:
        ConflictError: the file exists.
        JupiterError: the file can't be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConflictError(f"{path} is there already", "choose another name") from error
    except OSError as error:
        raise JupiterError(
            f"{path} can't be written: {error.strerror or error}", "change to another folder"
        ) from error
    return path
