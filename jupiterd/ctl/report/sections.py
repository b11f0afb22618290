"""The sections of the page.

Pure. Owns the texts and the choice of figures. Doesn't know where documents come from.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jupiterd.ctl.output.model_lines import training_lines
from jupiterd.ctl.output.phase_lines import dropped_line, heavy_drop_lines
from jupiterd.ctl.report.chart import Interval, Series, interval_chart, line_chart
from jupiterd.ctl.report.html import Html, element, folded, joined, section, table
from jupiterd.ctl.report.samples import Chosen, ShownSample
from jupiterd.cycle.gate.shown_reason import shown_reason
from jupiterd.cycle.rounds.explanation import explain
from jupiterd.cycle.rounds.shown_answers import answering_models, looping_line, shown_answer
from jupiterd.formats import counted, duration
from jupiterd.ids import short

Document = Mapping[str, Any]

SAMPLE_CHARS = 1500
NOT_KNOWN = "not known"
ANSWERS_SHOWN = 5
"""Prompts of the newest round that are shown; the others are folded."""


def overview(report: Document) -> Html:
    """Return the table of rounds, and charts of their models' scores."""
    rounds: Sequence[Document] = report["rounds"]
    rows = [
        (
            each["round"],
            element("span", each["verdict"] or "not judged", class_=each["verdict"] or "soft"),
            _bpb(each["val_bpb"]),
            _bpb(_said(each, "incumbent_bpb")),
            _count(each["tokens"]),
            _share(each.get("data")),
            short(str(each["id"])),
            shown_reason(each["reason"] or ""),
        )
        for each in rounds
    ]
    headers = ("round", "verdict", "bits/byte", "last student", "tokens so far", "synthetic",
               "model", "why")  # fmt: skip
    return section("Rounds", table(headers, rows), _bpb_chart(rounds), _gain_chart(rounds))


def _bpb_chart(rounds: Sequence[Document]) -> Html:
    lines = {
        "candidate": [(each["round"], each["val_bpb"]) for each in rounds],
        "last student": [
            (each["round"], _said(each, "incumbent_bpb"))
            for each in rounds
            if _is_a_model(each, "incumbent")
        ],
        "generator": [
            (each["round"], _said(each, "generator_bpb"))
            for each in rounds
            if _is_a_model(each, "generator")
        ],
    }
    series = [
        Series(name, [(x, y) for x, y in points if y is not None]) for name, points in lines.items()
    ]
    return line_chart("Bits per byte of held-out text, by round", "round", series)


def _gain_chart(rounds: Sequence[Document]) -> Html:
    intervals: list[Interval] = []
    margin = 0.0
    for each in rounds:
        evidence = _said(each, "evidence")
        if evidence and _is_a_model(each, "incumbent"):
            margin = each["verdict_document"]["settings"]["margin_bpb"]
            bounds = (evidence["lower_bound_bpb"], evidence["mean_improvement_bpb"],
                      evidence["upper_bound_bpb"])  # fmt: skip
            if all(bound is not None for bound in bounds):
                intervals.append(Interval(each["round"], *bounds))
    title = "What each candidate saves against the last student, in bits per byte, with its bounds"
    return interval_chart(f"{title}; the coloured line is the margin", "round", intervals, margin)


def loss(report: Document) -> Html:
    """Return the loss curves, and the lines about each round's training."""
    points = [
        Series(
            f"round {row['round']}",
            [(point["tokens"], point["loss"]) for point in row["points"]],
        )
        for row in report["log"]
    ]
    by_token = line_chart("Loss at each recorded checkpoint, nats per token", "tokens", points)
    lines = element("pre", "\n".join(training_lines(report)))
    return section("Training", by_token, *_loss_by_step(report.get("curve")), lines)


def _loss_by_step(curve: Document | None) -> Iterator[Html]:
    """Yield the newest round's curve, and a line about machines whose part of it is missing."""
    missing = ", ".join((curve or {}).get("missing") or ())
    drawn = Html("") if curve is None else _curve_chart(curve)
    if drawn:
        yield drawn
    if missing:
        yield element("p", f"Some of its steps were written by {missing}, not in reach.",
                      class_="soft")  # fmt: skip
    elif not drawn:
        yield element("p", "No curve of single steps is in reach.", class_="soft")


def _curve_chart(curve: Document) -> Html:
    series = [
        Series(name, [(step, loss) for step, loss, *_ in curve[key]])
        for name, key in (("training", "points"), ("held out", "validation"))
    ]
    return line_chart(f"Loss of each step of round {curve['round']}", "step", series)


def phases(cycle: Document) -> Html:
    """Return the table of all phases: input, output, dropped samples and time."""
    rows = [
        (
            row["round"],
            row["phase"],
            row["state"],
            _count(row.get("in")),
            _count(row.get("out")),
            "" if row["elapsed_s"] is None else _unbroken(duration(row["elapsed_s"])),
            dropped_line(row.get("dropped") or {}, most=12),
            row["detail"],
        )
        for row in cycle["phases"]
        if row["state"] != "waiting"
    ]
    headers = ("round", "phase", "state", "in", "out", "took", "left out, and why", "detail")
    heavy = [element("p", line, class_="HOLD") for line in heavy_drop_lines(cycle)]
    return section("Phases", *heavy, table(headers, rows))


def verdicts(rounds: Sequence[Document]) -> Html:
    """Return the explanation of each verdict, the newest first."""
    parts = [_verdict(each) for each in reversed(rounds) if each["verdict"]]
    return section("Verdicts", *(parts or [element("p", "No gate has decided yet.")]))


def _verdict(each: Document) -> Html:
    title = joined(
        [
            f"Round {each['round']}: ",
            element("span", each["verdict"], class_=each["verdict"]),
            f", {each['reason']}",
        ]
    )
    document = each.get("verdict_document")
    if not document:
        return folded(title, element("p", "The whole verdict wasn't in reach."))
    try:
        lines = explain(document)
    except (KeyError, TypeError, ValueError):  # a verdict of another version
        lines = ["The verdict was written by another version of Jupiter."]
    return folded(title, element("pre", "\n".join(lines)))


def answers(rounds: Sequence[Document]) -> Html:
    """Return what the compared models of each round wrote to the same prompts, the newest first."""
    answered = [each for each in reversed(rounds) if each.get("answers")]
    parts = [part for each in answered for part in _answered(each, is_newest=each is answered[0])]
    about = element(
        "p",
        "The models of a round are given the same prompts, of held-out text that no verdict is "
        "made of. Nothing is decided by these answers.",
        class_="soft",
    )
    return section("Side by side", about, *(parts or [_NONE]))


def _answered(each: Document, *, is_newest: bool) -> Iterator[Html]:
    """Yield the newest round's first prompts and fold the rest, and all of an earlier round."""
    found: Document = each["answers"]
    title = f"Round {each['round']}"
    if own := (each.get("own_questions") or {}).get("text"):
        yield element("p", f"{title}: {own}")
    if trouble := found.get("trouble"):
        yield element("p", f"{title}: answers are missing: {trouble}", class_="soft")
    rows: Sequence[Document] = found["rows"]
    if not rows:
        return
    if looping := looping_line(found):
        yield element("p", f"{title}: {looping}", class_="soft")
    if not is_newest:
        yield folded(title, _answer_table(found, rows))
        return
    yield joined([element("h3", title), _answer_table(found, rows[:ANSWERS_SHOWN])])
    if rest := rows[ANSWERS_SHOWN:]:
        yield folded(counted(len(rest), "further prompt"), _answer_table(found, rest))


def _answer_table(found: Document, rows: Sequence[Document]) -> Html:
    models = answering_models(found)
    heads = ["prompt", *(f"{each.title} {short(each.model)}" for each in models)]
    table_rows = [
        [element("pre", row["prompt"]), *(_answer(row.get(each.role)) for each in models)]
        for row in rows
    ]
    return element("div", table(heads, table_rows), class_="answers")


def _answer(text: str | None) -> Html:
    shown = shown_answer(text)
    words = [element("pre", shown.text)] if shown.text else []
    return joined([*words, *([element("p", shown.note, class_="soft")] if shown.note else [])])


def data(rounds: Sequence[Document]) -> Html:
    """Return counts of the newest known round's training data."""
    known = [each for each in rounds if (each.get("data") or {}).get("contents")]
    if not known:
        return section("Data", element("p", "What the shards hold isn't in reach."))
    last = known[-1]
    contents: Document = last["data"]["contents"]
    parts: list[object] = [
        element("p", f"Round {last['round']}: {_count(contents.get('samples'))} samples.")
    ]
    for field, title in _COUNTED:
        counts: Mapping[str, int] = contents.get(field) or {}
        if counts:
            ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            rows = [(name or NOT_KNOWN, _count(number)) for name, number in ranked[:40]]
            parts += [element("h3", title), table((field, "samples"), rows)]
    return section("Data", *parts)


_COUNTED = (
    ("kind", "Real and synthetic"), ("source", "Sources"), ("license", "Licences"),
    ("generator", "Who wrote the synthetic text"), ("template", "In which way"),
)  # fmt: skip


def samples(chosen: Chosen | None) -> Html:
    """Return the chosen samples of the newest round."""
    title = "Samples"
    if chosen is None:
        return section(title, element("p", "Nothing has been filtered yet."))
    if not chosen.is_readable:
        return section(title, element("p", "The files of the samples are damaged on this node."))
    parts: list[object] = [element("p", f"Of round {chosen.round}, by chance.", class_="soft")]
    for heading, found in (
        ("Synthetic, kept", chosen.retained),
        ("Synthetic, dropped", chosen.dropped),
        ("Real, dropped", chosen.dropped_real),
    ):
        parts += [element("h3", heading), *(list(map(_sample, found)) or [_NONE])]
    return section(title, *parts)


_NONE = element("p", "None.", class_="nothing")


def _sample(shown: ShownSample) -> Html:
    sample = shown.sample
    said = ", ".join(
        part
        for part in (
            shown.reason and f"dropped: {shown.reason}",
            sample.template,
            "as a conversation" if sample.messages else "",
            f"from {sample.source_uri}",
            sample.license,
            sample.generator and f"by {_model(sample.generator)}",
        )
        if part
    )
    own = element("div", element("pre", _cut(sample.text)))
    if shown.parent is None:
        return folded(joined([f"{short(sample.id)} ", element("span", said, class_="soft")]), own)
    parent = shown.parent
    both = element(
        "div",
        element("div", element("p", f"real, {short(parent.id)}", class_="soft"),
                element("pre", _cut(parent.text))),
        element("div", element("p", "what was made of it", class_="soft"),
                element("pre", _cut(sample.text))),
        class_="pair",
    )  # fmt: skip
    return folded(joined([f"{short(sample.id)} ", element("span", said, class_="soft")]), both)


def completions(rounds: Sequence[Document]) -> Html:
    """Return the completions that each candidate wrote, the newest first."""
    parts = [
        folded(f"Round {each['round']}", *map(_completion, each["completions"]))
        for each in reversed(rounds)
        if each.get("completions")
    ]
    about = element(
        "p",
        "The beginning is real held-out text; what the model wrote after it is coloured.",
        class_="soft",
    )
    return section("What the candidates write", about, *(parts or [_NONE]))


def _completion(each: Document) -> Html:
    note = " (repeats itself)" if each["is_looping"] else ""
    return element("pre", each["prompt"], element("mark", each["text"] + note))


def events(cycle: Document) -> Html:
    """Return the list of the cycle's events; empty if there are none."""
    lines: Iterable[str] = (event["text"] for event in cycle.get("events") or ())
    found = [element("li", line) for line in lines]
    return section("Events", element("ul", *found)) if found else Html("")


def _said(each: Document, name: str) -> Any:  # noqa: ANN401 - JSON
    document = each.get("verdict_document") or {}
    return (document.get("verdict") or {}).get(name)


def _is_a_model(each: Document, role: str) -> bool:
    """Return whether the candidate was compared with a model, and not with a byte model.

    Byte models score so much worse that the other curves couldn't be read on their scale.
    """
    return bool(((each.get("verdict_document") or {}).get("given") or {}).get(role))


def _share(found: Document | None) -> str:
    """Return the percentage of a round's bytes that is synthetic; empty: unknown."""
    contents: Document = (found or {}).get("contents") or {}
    synthetic_bytes, whole = contents.get("synthetic_bytes"), contents.get("bytes")
    return "" if synthetic_bytes is None or not whole else f"{100 * synthetic_bytes / whole:.1f} %"


def _unbroken(words: str) -> str:
    """Return words that stay on one line of a narrow column."""
    return words.replace(" ", "\u00a0")


def _cut(words: str) -> str:
    return words if len(words) <= SAMPLE_CHARS else f"{words[:SAMPLE_CHARS]} …"


def _model(name: str) -> str:
    return short(name) if len(name) == 64 else name


def _bpb(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _count(value: float | None) -> str:
    return "" if value is None else f"{int(value):,}"


def facts(report: Document) -> Iterator[Html]:
    """Yield the paragraphs under the page's title."""
    cycle = report["cycle"]
    yield element("p", f"cycle {cycle['id']}, {cycle['state']}, round {cycle['round']} of "
                  f"{cycle['rounds']}; began {report['started_at']}", class_="soft")  # fmt: skip
    if cycle.get("failure"):
        yield element("p", f"{cycle['failure']['message']}; {cycle['failure']['hint']}")
