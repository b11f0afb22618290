"""Lines about models.

Pure. Owns the columns and the texts; doesn't know where the documents come from.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jupiterd.formats import MISSING, counted, duration, plain, printable, table
from jupiterd.ids import short

HEADERS = (
    "MODEL", "ID", "RUN", "KIND", "VERDICT", "VAL BPB", "TOKENS", "PROMOTED", "HERE",
)  # fmt: skip
MAX_SHOWN = 4
"""The highest number of sources, licences or completions that are shown; -o json shows all."""

COMPLETION_CHARS = 240

Row = Mapping[str, Any]


def model_table(document: Row) -> list[str]:
    """Return the lines of the table of models."""
    rows = document.get("models") or []
    if not rows:
        return ["no model has been trained yet"]
    names = [row["name"] for row in rows]
    lines = table(HEADERS, [_row(row) for row in rows])
    if len(set(names)) < len(names):
        lines.append("a name that stands here twice means the upper one; the ID names the other")
    return lines


def _row(row: Row) -> tuple[str, ...]:
    return (
        plain(row["name"]),
        short(row["id"]),
        short(row["run"]),
        f"adapter of {plain(row['adapter']['base'])}" if row.get("adapter") else plain(row["kind"]),
        plain(row["verdict"]),
        _number(row["val_bpb"], ".4f"),
        _number(row["tokens"], ","),
        "yes" if row.get("promoted") else "no",
        "yes" if row["held_here"] else "no",
    )


def model_lines(model: Row) -> list[str]:
    """Return the lines about one model."""
    title = f"{plain(model['name'])} ({short(model['id'])}), {_KINDS[model['kind']]}"
    lines = [title, f"id          {model['id']}"]
    if model["verdict"]:
        lines.append(f"verdict     {model['verdict']}: {plain(model['reason'])}")
    if model["val_bpb"] is not None:
        lines.append(f"val_bpb     {model['val_bpb']:.4f} bits per byte of held-out text")
    lines.append(f"writes      {_writes(model)}")
    if model.get("promoted"):
        lines.append("promoted    it is its cycle's promoted model")
    if base := model.get("began_with"):
        lines.append(
            f"began with  {plain(base['name'])} ({short(str(base['id']))}), a model of others"
        )
    if adapter := model.get("adapter"):
        lines.append(f"adapter     of {plain(adapter['base'])}: {plain(adapter['options'])}")
    lines += list(_data(model.get("data")))
    lines += [f"trained     {line}" for line in training_lines(model)]
    lines.append(f"folder      {plain(model['folder']) if model['folder'] else _no_folder(model)}")
    return [*lines, *_completions(model.get("completions") or [])]


def training_lines(model: Row) -> list[str]:
    """Return a line for each round that was trained, and one for each attempt of a gang in it."""
    lines: list[str] = []
    for row in model.get("log") or []:
        first, last = (row["points"][0], row["points"][-1]) if row["points"] else (None, None)
        loss = "" if last is None else f", loss {last['loss']:.3f}"
        if first is not None and last is not None and first is not last:
            loss = f", loss {first['loss']:.3f} at step {first['step']:,} to {last['loss']:.3f}"
        lines.append(
            f"round {row['round']}: {counted(row['steps'], 'step')}, {row['tokens']:,} tokens{loss}"
        )
        lines += [f"  {_gang(attempt, model)}" for attempt in row["epochs"]]
    return lines


def _gang(attempt: Row, model: Row) -> str:
    machines: Mapping[str, str] = model.get("machines") or {}
    nodes = sorted({plain(machines.get(node) or short(node)) for node in attempt["nodes"]})
    took = "" if attempt["elapsed_s"] is None else f", {duration(attempt['elapsed_s'])}"
    ranks = len(attempt["nodes"])
    who = f"{attempt['island']}, " if attempt["island"] else ""
    gang = f"{counted(ranks, 'rank')} on {', '.join(nodes)}"
    number = attempt.get("attempt_in_round") or attempt["epoch"]  # from older daemons
    return f"{who}attempt {number}: {plain(attempt['engine'])}, {gang}{took}"


def _data(data: Row | None) -> Iterator[str]:
    if data is None:
        return
    contents: Row = data.get("contents") or {}
    synthetic_bytes = contents.get("synthetic_bytes")
    share = ""
    if synthetic_bytes is not None and contents.get("bytes"):
        share = f", {100 * synthetic_bytes / contents['bytes']:.1f} % of the bytes synthetic"
    counts = ", ".join(
        f"{int(data[name]):,} {noun}"
        for name, noun in (("tokens", "tokens"), ("documents", "samples"))
        if name in data
    )
    yield f"data        {counts}{share}"
    for field, title in (
        ("source", "sources"),
        ("license", "licences"),
        ("generator", "written by"),
    ):
        if contents.get(field):
            yield f"{title:<11} {_shares(contents[field])}"


def _shares(counts: Mapping[str, int]) -> str:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    text = ", ".join(f"{_named(name)} {count:,}" for name, count in ranked[:MAX_SHOWN])
    return text + (f" and {len(ranked) - MAX_SHOWN} more" if len(ranked) > MAX_SHOWN else "")


def _named(name: str) -> str:
    is_id = len(name) == 64 and all(char in "0123456789abcdef" for char in name)
    return short(name) if is_id else plain(name)


def _completions(found: Sequence[Row]) -> Iterator[str]:
    for number, each in enumerate(found[:MAX_SHOWN], 1):
        yield ""
        yield f"completion {number}{' (repeats itself)' if each['is_looping'] else ''}"
        yield from (f"  {line}" for line in _text_lines(each["prompt"][-COMPLETION_CHARS:]))
        yield from (f"  > {line}" for line in _text_lines(each["text"][:COMPLETION_CHARS]))
    if len(found) > MAX_SHOWN:
        yield ""
        yield f"{len(found) - MAX_SHOWN} more completions: -o json"


def _text_lines(text: str) -> list[str]:
    return [printable(line).rstrip() for line in text.strip("\n").splitlines()] or ["(nothing)"]


def _writes(model: Row) -> str:
    if not model["writes"]:
        return "its cycle doesn't generate with it"
    return f"its cycle generates with it: {model['writing_share']:.0%} of a template's prompts"


def _no_folder(model: Row) -> str:
    where = "its files are here" if model["held_here"] else "its files are on other nodes"
    return f"{where}; jupiterctl model export {printable(model['name'])} --to FOLDER"


def _number(value: float | None, form: str) -> str:
    return MISSING if value is None else format(value, form)


_KINDS = {
    "candidate": "what a round of a cycle has trained",
    "run": "the model of a training run",
    "generator": "a generator that others made",
    "base": "a model of others, with which a training began",
}
