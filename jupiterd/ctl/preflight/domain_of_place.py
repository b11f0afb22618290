"""A domain for a folder or an address: its source, its language, and its file.

Owns the choice of the source's kind, and the text and comments of the file. Doesn't read sources.
"""

import json
import re
import socket
from pathlib import Path
from textwrap import wrap
from typing import Any
from urllib.parse import urlsplit

from jupiterd.address_ranges import is_public
from jupiterd.ctl.preflight.cycle_preflight import Preflight
from jupiterd.ctl.preflight.source_survey import NOT_COUNTED, OnLine, silent, survey_of
from jupiterd.cycle.data.row_advice import field_hint
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.domain.survey import Survey
from jupiterd.cycle.domain.survey_lines import dropped_line, forecast_lines, reading_line, text_line
from jupiterd.cycle.holdout.verdict_forecast import verdict_forecast
from jupiterd.errors import EmptySourceError, NotFoundError, SourceUnreachableError, UsageError
from jupiterd.formats import printable
from jupiterd.path_text import path_of, path_text

COLUMNS = 98
"""The line width of the file's comments."""

FORGES = frozenset({"github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "git.sr.ht"})
"""Hosts where the path OWNER/PROJECT is a repository, although it doesn't end with .git."""

HINT = (
    "give it a folder, a file of rows (.jsonl, .csv, .parquet), or an address such as https://..."
)

SAY_LANGUAGE = "say it, such as --language es, or --language code:python"
EMPTY = "it holds no file that can be read"

Plain = dict[str, Any]


def domain_of_place(
    name: str, place: str, language: str, on_line: OnLine = silent, field: str = ""
) -> Preflight:
    """Survey a place, usually within ten seconds, and return a domain for it.

    Args:
        name: the domain's name.
        place: a folder, a file of rows, or a URL.
        language: the language of its text; empty: it is detected.
        on_line: gets lines about the progress.
        field: the field that holds the text in tables; empty: `text`.

    Raises:
        EmptySourceError: nothing in it can be used.
        NotFoundError: there is no such folder.
        SourceUnreachableError: the address can't be reached.
        UsageError: it can't be a source, or its language can't be detected.
    """
    plain: Plain = {
        "version": 1,
        "domain": name,
        "title": name.replace("_", " ").replace("-", " ").capitalize(),
        "language": language or "en",  # replaced by the detected one
        "data_sources": [_with_field(_source(place), place, field)],
        "holdout": {"salt": f"{name}-1"},
    }
    if plain["data_sources"][0].get("license") == "unknown":
        plain["license_policy"] = {"unknown": "warn"}
    draft = parse_domain(json.dumps(plain), f"{name}.yaml")
    survey = survey_of(draft, on_line, goes_far=True, finds_language=not language)
    _check_that_there_is_some(place, survey)
    domain = draft.model_copy(update={"language": language or _language(place, survey)})
    return Preflight(domain, survey, verdict_forecast(survey.counts, domain.holdout_rules()))


def file_text(found: Preflight, place: str, schema: Path) -> str:
    """Return the text of the domain file: only the needed keys, with comments that give reasons."""
    domain, survey = found.domain, found.survey
    source = domain.data_sources[0].model_dump(mode="json", exclude_defaults=True)
    source.pop("name", None)
    lines = [
        f"# yaml-language-server: $schema={schema.resolve().as_posix()}",
        *_comment(f"Made of {_shown_place(place)}; check it again: jupiterctl domain lint "
                  f"{domain.domain}. Every key there is: jupiterctl domain new NAME "
                  "--from-template"),
        "version: 1",
        f"domain: {domain.domain}",
        f"title: {json.dumps(domain.title, ensure_ascii=False)}",
        *_comment(_why_language(domain.language)),
        f"language: {domain.language}",
        "data_sources:",
        *_comment(_why_source(survey), "  "),
        *_source_lines(source),
    ]  # fmt: skip
    if domain.license_policy.unknown != "deny":
        lines += _comment("nobody has said under which licence it is: say it above, if you know it")
        lines += ["license_policy:", f"  unknown: {domain.license_policy.unknown}"]
    lines += ["holdout:", *_comment(_why_holdout(found), "  ")]
    lines.append(f"  salt: {domain.holdout.salt}")
    return "\n".join(lines) + "\n"


def _shown_place(place: str) -> str:
    return printable(path_text(place))


def _source(place: str) -> Plain:
    if re.match(r"https?://", place):
        return _address(place)
    if "://" in place and not place.startswith("file://"):
        raise UsageError(f"{_shown_place(place)} is nothing that can be read", HINT)
    if place.startswith("file://"):
        return {"kind": "git", "url": place, "license": "unknown"}
    path = path_of(place).absolute()
    if path.is_dir():
        return {"kind": "folder", "path": path_text(path), "license": "private"}
    if not path.exists():
        raise NotFoundError(f"there is no folder {_shown_place(place)} on this machine", HINT)
    for kind, endings in _TABLES.items():
        if path.name.lower().endswith(endings):
            return {"kind": kind, "path": path_text(path), "license": "private"}
    if path.name.lower().endswith(CSV) and not re.search(r"[*?\[{]", path.name):
        where = path_text(path.parent)
        return {"kind": "folder", "path": where, "glob": path_text(path.name), "license": "private"}
    raise UsageError(
        f"{_shown_place(place)} is one file, and no rows", "give the folder it lies in"
    )


def _with_field(source: Plain, place: str, field: str) -> Plain:
    """Return the source with the field that holds the text in its rows.

    Raises:
        UsageError: the source has no rows.
    """
    if not field:
        return source
    if source["kind"] not in _WITH_ROWS:
        raise UsageError(
            f"--field is said of tables, and {_shown_place(place)} is none", "leave it out"
        )
    return {**source, "field": field}


CSV = (".csv", ".tsv")

_WITH_ROWS = ("folder", "jsonl", "parquet")

_TABLES = {
    "jsonl": (".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst", ".ndjson.gz", ".ndjson.zst"),
    "parquet": (".parquet",),
}


def _address(url: str) -> Plain:
    try:
        parts = urlsplit(url)
    except ValueError as error:  # such as an unclosed bracket
        raise UsageError(f"{printable(url)} is no address: {error}", HINT) from error
    names = [name for name in parts.path.split("/") if name]
    near: Plain = {"allow_private_addresses": True} if _is_near(parts.hostname or "") else {}
    is_project = parts.hostname in FORGES and len(names) == 2
    if parts.path.endswith(".git") or is_project:
        return {"kind": "git", "url": url, "license": "unknown", **near}
    folder = parts.path[: parts.path.rfind("/") + 1] or "/"
    within = [f"{parts.scheme}://{parts.netloc}{folder}"]
    return {"kind": "web", "urls": [url], "within": within, **near}


def _is_near(host: str) -> bool:
    """Return whether all addresses of a host are private: the user names it, so it may be read."""
    try:
        found = {str(row[4][0]) for row in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):  # UnicodeError: an invalid host name
        return False
    return bool(found) and not any(map(is_public, found))


def _check_that_there_is_some(place: str, survey: Survey) -> None:
    (source,) = survey.sources
    if source.why_not.startswith(NOT_COUNTED) and source.kind != "web":
        return
    if source.is_empty or (source.why_not and source.kind in {"folder", "jsonl", "parquet"}):
        raise EmptySourceError(source.why_not, field_hint(source.why_not) or HINT)
    if source.why_not and source.kind == "web":
        raise SourceUnreachableError(source.why_not, "look whether the address opens in a browser")
    if not source.why_not and not source.kept and not source.is_at_least:
        lost = dropped_line(survey)
        why = "docs/domains.md explains each reason, and how a rule is loosened" if lost else HINT
        raise EmptySourceError(
            f"nothing in {_shown_place(place)} can be used: {lost or EMPTY}", why
        )


def _language(place: str, survey: Survey) -> str:
    if survey.language:
        return survey.language
    (source,) = survey.sources
    why = source.why_not or "the text that was read doesn't show it"
    raise UsageError(f"nobody knows what {_shown_place(place)} is written in: {why}", SAY_LANGUAGE)


def _why_language(language: str) -> str:
    if language.startswith("code:"):
        return "nearly all of its text is code of this language; every text must be"
    return "what most of its text is in; prose in another language is left out"


def _why_source(survey: Survey) -> str:
    (source,) = survey.sources
    if source.why_not:
        return source.why_not
    return f"{reading_line(survey)}; {text_line(survey)} would be kept"


def _why_holdout(found: Preflight) -> str:
    forecast = "; ".join(forecast_lines(found.survey, found.forecast))
    return (
        f"{forecast}. The salt chooses what is held out: with another one scores can't be compared"
    )


def _source_lines(source: Plain) -> list[str]:
    lines: list[str] = []
    for key, value in {"kind": source.pop("kind"), **source}.items():
        if key == "license" and value == "private":
            why = "you wrote it yourself, or have it for your own use; else the SPDX id of its "
            lines += _comment(f"{why}licence, such as CC-BY-4.0", "    ")
        lines.append(f"    {key}: {_value(value)}")
    if "license" not in source and lines[0].endswith("folder"):
        lines += _private()
    return [f"  - {lines[0].strip()}", *lines[1:]]


def _private() -> list[str]:
    why = "private: you wrote it yourself, or have it for your own use; else the SPDX id of its"
    return [*_comment(f"{why} licence", "    "), "    license: private"]


def _value(value: object) -> str:
    """Return a value as YAML; texts that YAML might read as another type are quoted."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z~/][\w./~+-]*", value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _comment(text: str, indent: str = "") -> list[str]:
    width = COLUMNS - len(indent) - 2
    lines = wrap(printable(text), width, break_on_hyphens=False, break_long_words=False)
    return [f"{indent}# {line}" for line in lines]
