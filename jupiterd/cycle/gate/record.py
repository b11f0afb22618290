"""A verdict's folder as texts: everything that is needed to decide again, and what was decided.

Owns the form of each file, and coming to the same text from the same files. Doesn't know where they
lie: it is given texts and returns texts.

Numbers of a verdict have 12 significant digits: what comes after is the last word of a machine's
mathematical library, and another machine must come to the same text.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeVar, cast

from jupiterd.cycle.gate.baseline import (
    CHOICE,
    GENERATOR,
    INCUMBENT,
    Baseline,
    strongest_baseline,
    with_baseline,
)
from jupiterd.cycle.gate.case import Findings, GateSettings
from jupiterd.cycle.gate.proxy import ProxyRun, Taught
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.gate.scores import ClozeScore, DocumentScore
from jupiterd.cycle.gate.skewness import SKEW_ERRORS
from jupiterd.cycle.gate.tie_break import Judged
from jupiterd.cycle.gate.verdict import Verdict, decide
from jupiterd.cycle.judge.pair import Pair
from jupiterd.errors import CorruptArtifactError

VERDICT_FILE = "verdict.json"
SCORES_FILE = "scores.jsonl"
CLOZE_FILE = "cloze.jsonl"
SANITY_FILE = "sanity.json"
PROXY_FILE = "proxies.jsonl"
PAIRS_FILE = "pairs.jsonl"
"""What a judge was asked, and what it said."""
MATERIAL_FILES = (SCORES_FILE, CLOZE_FILE, SANITY_FILE, PROXY_FILE, PAIRS_FILE)
"""All that a verdict is decided on, as far as it is there."""
SCHEMA = "jupiter/verdict/v3"
"""v1 was of one question and one incumbent, v2 without small students."""
SCHEMA_WITH_JUDGE = "jupiter/verdict/v4"
"""v3, and what a judge said: the form where the domain names one."""

TEST = "paired@3"
"""Name@version of the test."""

_SKEW_ERRORS = {"paired@2": 0.0, TEST: SKEW_ERRORS}
"""Test -> how far it allows for skewed errors; what was given without one takes none to be."""

SCHEMA_BEFORE_STUDENTS = "jupiter/verdict/v2"
"""v3 without what small students have shown: nobody had trained any yet."""
_OF_STUDENTS = ("teaching", "control", "proxies")
_OF_BASE = ("base_bpb", "against_base", "forgetting")
"""Numbers of a verdict where a model was brought, and of no other."""

DIGITS = 12


@dataclass(frozen=True)
class Material:
    """What a verdict is decided on."""

    scores: Sequence[DocumentScore]
    findings: Findings


def score_lines(scores: Iterable[DocumentScore]) -> str:
    """Return the scores, one document on each line, sorted."""
    return _lines(_score_fields(score) for score in sorted(scores, key=_place))


def _score_fields(score: DocumentScore) -> dict[str, Any]:
    """Return a score as its line has it; nothing of a model that nobody brought."""
    fields = asdict(score)
    return fields if score.base_nats is not None else _without(fields, {"base_nats"})


def _without(fields: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def cloze_lines(rows: Iterable[ClozeScore]) -> str:
    """Return who filled which gap, one gap on each line, sorted."""
    return _lines(asdict(row) for row in sorted(rows, key=lambda row: row.id))


def sanity_text(sanity: Sanity) -> str:
    """Return what was seen of a candidate that was tried out."""
    return _text(asdict(sanity))


def proxy_lines(runs: Iterable[ProxyRun]) -> str:
    """Return how small students learned, one on each line, sorted."""
    return _lines(asdict(run) for run in sorted(runs, key=_place_of_run))


def pair_lines(pairs: Iterable[Pair]) -> str:
    """Return pairs of texts with what was said of them, one on each line, sorted."""
    return _lines(asdict(pair) for pair in sorted(pairs, key=lambda pair: pair.id))


def read_score_lines(texts: Iterable[str]) -> list[DocumentScore]:
    """Return the scores of all texts; no document may stand in two.

    Raises:
        CorruptArtifactError: a line is no score, or a document was scored twice.
    """
    scores = [_score(fields) for text in texts for fields in _parsed_lines(text)]
    _check_once([f"{score.id}/{score.part}" for score in scores], "document", "scored")
    return scores


def read_cloze_lines(texts: Iterable[str]) -> list[ClozeScore]:
    """Return who filled which gap.

    Raises:
        CorruptArtifactError: a line is something else, or a gap was filled twice.
    """
    return _read_once(ClozeScore, texts, lambda row: row.id, "filled")


def read_proxy_lines(texts: Iterable[str]) -> list[ProxyRun]:
    """Return how small students learned, by arm and seed.

    Raises:
        CorruptArtifactError: a line is something else, or a student was trained twice.
    """
    runs = _read_once(ProxyRun, texts, lambda run: f"{run.seed} of arm {run.arm}", "trained")
    return sorted(runs, key=_place_of_run)


def read_pair_lines(texts: Iterable[str]) -> list[Pair]:
    """Return pairs of texts with what a judge said of them, as far as it was asked.

    Raises:
        CorruptArtifactError: a line is something else, or a pair was asked about twice.
    """
    pairs = _read_once(Pair, texts, lambda pair: pair.id, "asked about")
    return [replace(pair, replies=tuple(map(str, pair.replies))) for pair in pairs]


def read_material(files: Mapping[str, Sequence[str]]) -> Material:
    """Return what the files of a verdict's folder hold, or those of the scores it was made of.

    Args:
        files: name of a file -> its texts, of which there are several where pieces were scored.

    Raises:
        CorruptArtifactError: a file isn't what its name says.
    """
    sanity = [_built(Sanity, _parsed(text)) for text in files.get(SANITY_FILE, ())]
    pairs = read_pair_lines(files.get(PAIRS_FILE, ()))
    findings = Findings(
        sanity=cast("Sanity", sanity[0]) if sanity else None,
        cloze=read_cloze_lines(files.get(CLOZE_FILE, ())),
        taught=Taught(read_proxy_lines(files.get(PROXY_FILE, ()))),
        judged=Judged("", pairs) if pairs else None,
    )
    return Material(read_score_lines(files.get(SCORES_FILE, ())), findings)


def settings_of(given: Mapping[str, Any]) -> GateSettings:
    """Return the rules of a domain, as the task that decides is told them."""
    return GateSettings(
        alpha=float(given["gate"]["alpha"]),
        margin_bpb=float(given["gate"]["margin_bpb"]),
        stratum_veto_bpb=float(given["gate"]["stratum_veto_bpb"]),
        min_documents=int(given["holdout"]["min_documents"]),
        min_clusters=int(given["holdout"]["min_clusters"]),
        skew_errors=_SKEW_ERRORS.get(str(given.get("test", ""))),
        max_forgetting=float(given["gate"].get("max_forgetting", GateSettings.max_forgetting)),
    )


def _settings_fields(settings: GateSettings, verdict: Verdict) -> dict[str, Any]:
    """Return the settings as verdict.json has them; the test is told by what was given."""
    of_base = {"max_forgetting"} if verdict.base_bpb is None else set[str]()
    return _without(asdict(settings), {"skew_errors", *of_base})


def decide_on(
    material: Material, given: Mapping[str, Any], form: str = SCHEMA
) -> tuple[Verdict, str]:
    """Return the verdict and the text of verdict.json.

    Args:
        material: what is decided on.
        given: what the task was told: gate and holdout as in the domain file, the look, and ids.
        form: of the verdict that is decided again; v2 asked the same questions as v3.
    """
    settings = settings_of(given)
    findings = replace(
        material.findings,
        taught=_taught(material.findings.taught, given),
        judged=_judged(material.findings.judged, given),
        nobody_generates=bool(given.get("nobody_generates")),
    )
    scores, chosen = _with_baseline(material.scores, given)
    verdict = decide(scores, settings, int(given["look"]), findings)
    numbers = _rounded(asdict(verdict)) | ({"baseline": str(chosen)} if chosen else {})
    if findings.judged is None:
        del numbers["tie_break"]
    if verdict.base_bpb is None:
        numbers = _without(numbers, _OF_BASE)
    schema = SCHEMA if findings.judged is None else SCHEMA_WITH_JUDGE
    if form == SCHEMA_BEFORE_STUDENTS:
        schema = form
        numbers = {n: each for n, each in numbers.items() if n not in _OF_STUDENTS}
        numbers["proxy_student"] = None
    document = {
        "schema": schema,
        "verdict": numbers,
        "settings": _settings_fields(settings, verdict),
        "given": dict(given),
    }
    return verdict, _text(document)


def _with_baseline(
    scores: Sequence[DocumentScore], given: Mapping[str, Any]
) -> tuple[Sequence[DocumentScore], Baseline | None]:
    """Return the scores with a baseline for who is absent, and which; None where nobody is."""
    absent = [name for name in (INCUMBENT, GENERATOR) if not given.get(name)]
    if given.get("baseline") != CHOICE or not absent:
        return scores, None
    chosen = strongest_baseline(scores)
    return with_baseline(scores, chosen, absent), chosen


def _taught(found: Taught, given: Mapping[str, Any]) -> Taught:
    """Return what the small students learned, with what the task was told of those there aren't."""
    stated = given.get("teaching", {})
    return replace(
        found,
        why_not=str(stated.get("why_not", "")),
        wrote_nothing=str(stated.get("wrote_nothing", "")),
    )


def _judged(found: Judged | None, given: Mapping[str, Any]) -> Judged | None:
    """Return what the judge said that the task was told of; None where the domain names none."""
    stated = given.get("judge")
    if not stated:
        return None
    pairs = () if found is None else found.pairs
    return Judged(str(stated["name"]), pairs, str(stated.get("why_not", "")))


def read_verdict(text: str) -> dict[str, Any]:
    """Return what verdict.json says.

    Raises:
        CorruptArtifactError: it is no verdict, or of a version that can't be read any more.
    """
    document = _parsed(text)
    if document.get("schema") not in {SCHEMA_BEFORE_STUDENTS, SCHEMA, SCHEMA_WITH_JUDGE}:
        raise CorruptArtifactError(
            f"this is no verdict of form {SCHEMA}, but of {document.get('schema', 'none')}",
            "verdicts from v2 on are read and decided again",
        )
    return document


def _place(score: DocumentScore) -> tuple[str, str]:
    # The same text may be held out for two purposes, of two clusters that have it.
    return score.id, score.part


def _place_of_run(run: ProxyRun) -> tuple[str, int]:
    return run.arm, run.seed


def _score(fields: dict[str, Any]) -> DocumentScore:
    for name in (name for name in fields if name.endswith("_nats")):
        fields[name] = math.inf if fields[name] is None else float(fields[name])
    return cast("DocumentScore", _built(DocumentScore, fields))


def _built(kind: type, fields: dict[str, Any]) -> object:
    try:
        return kind(**fields)
    except TypeError as error:
        raise CorruptArtifactError(
            f"a line of the gate's files is no {_NAMES[kind]}",
            _CHANGED,
        ) from error


_CHANGED: Final = "they were written by another version of Jupiter, or changed since"


_NAMES: Mapping[type, str] = {
    DocumentScore: "score",
    ClozeScore: "filled gap",
    Sanity: "trial of a candidate",
    ProxyRun: "small student",
    Pair: "pair of texts",
}

_Row = TypeVar("_Row")


def _read_once(
    kind: type[_Row], texts: Iterable[str], name: Callable[[_Row], str], done: str
) -> list[_Row]:
    """Return the rows of all texts; raises CorruptArtifactError where one stands in two.

    Args:
        kind: what a line is.
        texts: of a file's pieces.
        name: what a row is called; no two may be called alike.
        done: what was done to each, for the error.
    """
    rows = [cast("_Row", _built(kind, fields)) for text in texts for fields in _parsed_lines(text)]
    _check_once([name(row) for row in rows], _NAMES[kind], done)
    return rows


def _check_once(ids: Sequence[str], noun: str, done: str) -> None:
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            raise CorruptArtifactError(f"{noun} {each[:8]} was {done} in two pieces")
        seen.add(each)


def _parsed_lines(text: str) -> list[dict[str, Any]]:
    return [_parsed(line) for line in text.splitlines()]


def _parsed(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise CorruptArtifactError("a file of the gate is no JSON", _CHANGED) from error
    if not isinstance(fields, dict):
        raise CorruptArtifactError("a file of the gate isn't what its name says", _CHANGED)
    return cast("dict[str, Any]", fields)


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(
        json.dumps(_finite(dict(row)), sort_keys=True, allow_nan=False) + "\n" for row in rows
    )


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the value with None for every number that isn't finite, as JSON demands."""
    return _numbers(value, lambda number: number)


def _rounded(value: Any) -> Any:  # noqa: ANN401 - JSON
    return _numbers(value, lambda number: float(f"{number:.{DIGITS}g}"))


def _numbers(value: Any, change: Callable[[float], float]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return {str(name): _numbers(each, change) for name, each in fields.items()}
    if isinstance(value, list | tuple):
        rows = cast("Sequence[Any]", value)
        return [_numbers(each, change) for each in rows]
    if isinstance(value, float):
        return change(value) if math.isfinite(value) else None
    return value
