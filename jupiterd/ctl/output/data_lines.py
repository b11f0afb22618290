"""Lines about data sets and audits.

Pure. Owns the columns and the texts; doesn't know where the documents come from.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jupiterd.formats import MISSING, counted, plain, table
from jupiterd.ids import short

HEADERS = ("NAME", "ID", "STATE", "TOKENS", "DOCUMENTS", "HELD OUT", "VOCABULARY", "FROM")

Row = Mapping[str, Any]


ROUND_HEADERS = ("ROUND", "SHARDS", "TOKENS", "SAMPLES", "SYNTHETIC", "SOURCES", "LICENCES")
MAX_SHOWN = 3
"""The highest number of sources or licences that a row of the table names."""


def data_table(document: Row) -> list[str]:
    """Return the table of data sets, then the table of the data of rounds."""
    rows, rounds = document.get("data") or [], document.get("rounds") or []
    lines = table(HEADERS, [_row(row) for row in rows]) if rows else []
    between = [""] if rows and rounds else []
    lines += between + (_round_lines(rounds) if rounds else [])
    return lines or ["no data set has been made"]


def _round_lines(rounds: Sequence[Row]) -> list[str]:
    """Return the table of the data of rounds, and the command to train on one without its cycle."""
    newest = f"{plain(rounds[0]['name'])}/{rounds[0]['round']}"
    export = f"jupiterctl data export {newest} --to FILE, then train start --data FILE"
    return [*table(ROUND_HEADERS, list(map(_round_row, rounds))), f"a round's data alone: {export}"]


def _round_row(row: Row) -> tuple[str, ...]:
    counts = (row.get(key) for key in ("tokens", "documents", "synthetic_documents"))
    contents = row.get("contents") or {}
    return (
        f"{plain(row['name'])}/{row['round']}",
        short(row["shards"]),
        *(MISSING if count is None else f"{count:,}" for count in counts),
        _shares(contents.get("source")),
        _shares(contents.get("license")),
    )


def _shares(counts: Mapping[str, int] | None) -> str:
    if not counts:
        return MISSING
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    text = ", ".join(f"{plain(name) or MISSING} {count:,}" for name, count in ranked[:MAX_SHOWN])
    return text + (f" and {len(ranked) - MAX_SHOWN} more" if len(ranked) > MAX_SHOWN else "")


def _row(row: Row) -> tuple[str, ...]:
    counts = (row.get(key) for key in ("tokens", "documents", "holdout_documents", "vocab_size"))
    return (
        plain(row["name"]),
        short(row["id"]),
        plain(row["state"]),
        *(MISSING if count is None else f"{count:,}" for count in counts),
        plain(row["source"]),
    )


def ready_lines(row: Row) -> list[str]:
    """Return the lines about a finished data set."""
    counted, form = row.get("counted_tokens"), row.get("form")
    loss = "" if counted is None else f"; the loss counts {counted:,} of the tokens"
    return [
        f"data: {plain(row['name'])}",
        *([f"form: {plain(form)}{loss}"] if form else []),
        f"tokens: {row['tokens']:,}",
        f"shards: {row['shards']}",
    ]


def audit_lines(document: Row) -> list[str]:
    """Return the lines about each run's audit: what is proved, and each problem."""
    audits = document.get("audit") or []
    lines = [line for each in audits for line in _audit_lines(each)]
    return lines or ["nothing has been trained yet"]


def _audit_lines(each: Row) -> list[str]:
    title = f"{each['kind']} {plain(each['name'])} ({short(each['id'])})"
    lines = [f"{title}  {'ok' if each['ok'] else 'WRONG'}"]
    for part in each["rounds"]:
        head = f"round {part['round']}: " if each["kind"] == "cycle" else ""
        lines.append(
            f"  {head}[0, {part['cursor']:,}) in {counted(len(part['ranges']), 'range')}, "
            f"{part['tokens']:,} tokens; {counted(part['passes'], 'pass', 'passes')} over "
            f"{part['sequences']:,} sequences and {part['of_next_pass']:,} of the next"
        )
        lines += [f"  {head}{line}" for line in _trunk_lines(part)]
        lines += [f"  {head}{plain(problem)}" for problem in part["problems"]]
    lines += [f"  {plain(problem)}" for problem in each["problems"]]
    lines += [f"  {line}" for proof in each.get("purged", ()) for line in _purged_lines(proof)]
    if "outer_steps" in each:
        lines += _outer_lines(each)
        if each["kind"] != "cycle" or not each["checkpoints"]:
            return lines
    read, written = each["checkpoints_read"], each["checkpoints"]
    return [*lines, f"  {read} of {counted(written, 'checkpoint')} read on this node"]


def _trunk_lines(part: Row) -> Iterator[str]:
    """Yield a line about the positions that later rounds contain and the gate's branch, if any."""
    trunk, cursor = part.get("trunk_cursor") or 0, part["cursor"]
    if not trunk:
        return
    began = f"after {part['began_with_tokens']:,} tokens of earlier rounds, "
    branch = f", then a branch [{trunk:,}, {cursor:,}) for the gate" if cursor > trunk else ""
    yield f"{began if part['began_with_tokens'] else ''}trunk [0, {trunk:,}){branch}"


def _outer_lines(each: Row) -> Iterator[str]:
    """Yield lines about islands' outer steps and about positions that aren't trained on yet."""
    yield f"  {counted(each['outer_steps'], 'outer step')} of its islands"
    for what, ranges in (("given out", each["given_out"]), ("came back", each["returned"])):
        if ranges:
            sequences = sum(end - first for first, end in ranges)
            yield f"  {counted(sequences, 'position')} {what}, not trained on yet"


def _purged_lines(proof: Row) -> Iterator[str]:
    source = plain(proof["source"])
    if not proof["rounds"]:
        yield f"source {source}: purged; no round was packed since"
    for part in proof["rounds"]:
        held = counted(part["samples"], "sample")
        yield f"source {source}: purged, {held} in round {part['round']}; {_left_out(part)}"


def _left_out(part: Row) -> str:
    """Return what a round left out of a purged source; 0 may mean a mistyped address."""
    if part["left_out"] or part["samples"]:
        return f"{part['left_out']:,} left out"
    if not part["collected"]:
        return "not collected any more"
    return "there was nothing of it to leave out: look how its address is written"


def purged_lines(purged: Row) -> list[str]:
    """Return the lines about what a purge does, and what it doesn't."""
    scope = f"cycle {short(purged['cycle'])}" if purged["cycle"] else "every cycle"
    begun = "was purged already" if purged["already"] else "is purged"
    what = f"source {plain(purged['source'])} {begun}"
    return [
        f"{what}: {scope} on {plain(purged['domain'])} packs nothing of it any more",
        "what was made from it is left out too, and so is what is collected later",
        "what earlier rounds made of it stays: their samples, tokenizers and models",
        "jupiterctl data audit shows the proof once a round was packed",
    ]
