"""The model card of an export: what a model is, its data, its training and its verdict.

Owns the text. Pure: turns the daemon's document and facts about the folder into Markdown. Says
explicitly what is unknown.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jupiterd.ctl.model.example_prompt import example_prompt
from jupiterd.ctl.model.gguf import HERE
from jupiterd.ctl.model.special_tokens import SpecialTokens
from jupiterd.ctl.output.model_lines import training_lines
from jupiterd.ctl.sources.adapter_base import RecordedBase
from jupiterd.ctl.sources.exported_base import AdapterFacts
from jupiterd.cycle.rounds.explanation import explain
from jupiterd.formats import counted, duration, plain, printable, size
from jupiterd.ids import short
from jupiterd.weights_header import Weights

Document = Mapping[str, Any]

MAX_ROWS = 50
"""The highest number of rows of a table; jupiter.json has all rows."""

_LONGEST_TICKS = re.compile(r"`+")
_FIRST_POINTS = 12
"""The highest number of points of a round's loss in the table."""

UNKNOWN = "unknown"


@dataclass(frozen=True)
class CardFacts:
    """The facts that a card is made from."""

    model: Document
    """The daemon's document of the model."""
    form: str
    """hf, mlx or gguf."""
    config: Document
    """The content of config.json."""
    weights: Weights
    sizes: Mapping[str, int]
    """File name -> size in bytes."""
    folder: str
    """The folder's name."""
    marks: SpecialTokens
    """The token that begins a text, and whether there is a chat template."""
    gguf_maker: str = ""
    """The program that wrote the GGUF file; empty: there is none."""
    adapter: AdapterFacts | None = None
    """Of an adapter alone, whose base isn't in the folder; None: it is a whole model."""


def card(facts: CardFacts) -> str:
    """Return the text of README.md."""
    model = facts.model
    parts = [
        _front(facts),
        [f"# {_title(model)}", "", *_about(facts)],
        ["## How to load it", "", *_loading(facts)],
        ["## What it was trained on", "", *_data(model)],
        ["## What the gate said", "", *_verdict(model)],
        *_adapter(facts),
        ["## How it was trained", "", *_training(model)],
        ["## What it writes", "", *_completions(model)],
        ["## Sizes", "", *_sizes(facts)],
    ]
    return "\n".join("\n".join(part).rstrip() + "\n" for part in parts)


def _front(facts: CardFacts) -> list[str]:
    """Return the lines of the YAML block that model hubs read."""
    language = str(facts.model.get("language") or "")
    tags = ["jupiter", f"{facts.config.get('model_type', '')}"]
    tags += ["code", language.partition(":")[2]] if language.startswith("code:") else []
    library = {"hf": "transformers", "mlx": "mlx", "gguf": "gguf"}[facts.form]
    library = "peft" if facts.adapter and facts.form == "hf" else library
    lines = ["---", f"library_name: {library}", "pipeline_tag: text-generation", "license: other"]
    lines += [f"language: {json.dumps(language)}"] * bool(re.fullmatch(r"[a-z]{2,3}", language))
    return [*lines, "tags:", *(f"- {json.dumps(printable(tag))}" for tag in tags if tag), "---"]


def _title(model: Document) -> str:
    return f"{_cell(model['name'])} ({short(str(model['id']))})"


def _about(facts: CardFacts) -> Iterator[str]:
    model = facts.model
    kind = str(facts.config.get("model_type") or UNKNOWN)
    about = f", about: {_cell(model['title'])}" if model.get("title") else ""
    what = "A causal language model" if facts.adapter is None else "An adapter beside a model"
    yield (
        f"{what} of {facts.weights.parameters:,} parameters ({_cell(kind)})"
        f"{about}. Made with Jupiter; {_KINDS[str(model['kind'])]}."
    )
    yield ""
    if model.get("val_bpb") is not None:
        yield f"- held-out text: **{model['val_bpb']:.4f} bits per byte**"
    yield f"- verdict: **{model.get('verdict') or 'none: nobody has judged it'}**"
    yield f"- id: `{model['id']}`"
    if base := model.get("began_with"):
        yield (
            f"- it began with the weights of {_cell(base['name'])} (`{base['id']}`), which others "
            "made: their licence and their data count, too"
        )
    if model.get("started_at"):
        yield f"- the {'cycle' if model['kind'] == 'candidate' else 'run'} began: " + _cell(
            model["started_at"]
        )


_KINDS = {
    "candidate": "it is the candidate of one round of a self-improving cycle",
    "run": "it is the model of a training run",
    "generator": "others made it, and a cycle generates text with it: their licence and their "
    "model card count, not this one",
    "adapter": "others made it, and its base: their licences and their model cards count, not this "
    "one",
    "base": "others made it, and a training began with it: their licence and their model card "
    "count, not this one",
}


def _loading(facts: CardFacts) -> Iterator[str]:
    if facts.adapter is not None:
        yield from _beside_base(facts, facts.adapter.base)
        return
    if facts.form == "gguf":
        yield "```sh"
        talks = "" if facts.marks.is_chat else "-no-cnv "
        said = shlex.quote(example_prompt(facts.model, is_chat=facts.marks.is_chat))
        yield f"llama-cli -m {facts.folder}/model.gguf {talks}-p {said}"
        yield "```"
        yield ""
        yield f"{facts.gguf_maker} made it: {_ROUNDED if facts.gguf_maker == HERE else _CONVERTED}"
        yield ""
        yield from _talk(facts.marks)
        return
    torch = [
        "```python",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        f"model = AutoModelForCausalLM.from_pretrained({json.dumps(facts.folder)})",
        f"tokenizer = AutoTokenizer.from_pretrained({json.dumps(facts.folder)})",
        "```",
    ]
    mlx = [
        "```python",
        "from mlx_lm import generate, load",
        f"model, tokenizer = load({json.dumps(facts.folder)})",
        *_mlx_generation(facts),
        "```",
    ]
    first, second = (mlx, torch) if facts.form == "mlx" else (torch, mlx)
    names = ("mlx-lm", "transformers") if facts.form == "mlx" else ("transformers", "mlx-lm")
    yield f"With {names[0]}:"
    yield ""
    yield from first
    yield ""
    yield (
        f"The same folder, with the same weights, loads in {names[1]}; nothing was converted or "
        "quantized:"
    )
    yield ""
    yield from second
    yield ""
    yield from _talk(facts.marks)


def _beside_base(facts: CardFacts, beside: RecordedBase) -> Iterator[str]:
    """Yield how an adapter is loaded beside its base, which is another folder."""
    base = beside.name or "BASE"
    yield f"This is an adapter alone. It is loaded beside its base, {_cell(base)}, from the folder"
    yield "in which both lie."
    yield from _base_written(beside)
    yield ""
    if facts.form == "mlx":
        said = shlex.quote(example_prompt(facts.model, is_chat=facts.marks.is_chat))
        places = f"--model {shlex.quote(base)} --adapter-path {shlex.quote(facts.folder)}"
        yield from ("```sh", f"mlx_lm.generate {places} --prompt {said}", "```")
    else:
        yield from (
            "```python",
            "from peft import PeftModel",
            "from transformers import AutoModelForCausalLM, AutoTokenizer",
            f"base = AutoModelForCausalLM.from_pretrained({json.dumps(base)})",
            f"model = PeftModel.from_pretrained(base, {json.dumps(facts.folder)})",
            f"tokenizer = AutoTokenizer.from_pretrained({json.dumps(facts.folder)})",
            "```",
        )
    yield ""
    yield (
        "Beside other weights of the same shapes it says nonsense, which neither peft nor mlx-lm "
        f"notices; the hash of its own, by which Jupiter tells them, is `{beside.weights}`. "
        "`jupiterctl model export --merge` writes both as one whole model."
    )


def _base_written(base: RecordedBase) -> Iterator[str]:
    """Yield how the base's folder comes to be, of one that Jupiter keeps."""
    if not base.id:
        yield "It is a folder, or a model of the hub; write where you have it."
        return
    yield "Where it isn't there yet, the cluster that trained the adapter writes it:"
    yield ""
    yield "```sh"
    yield f"jupiterctl model export {short(base.id)} --to {shlex.quote(base.name)}"
    yield "```"


def _adapter(facts: CardFacts) -> list[list[str]]:
    """Return the part about an adapter; nothing of a whole model."""
    if facts.adapter is None or not facts.adapter.rows:
        return []
    return [["## What the adapter is", "", *_table(("what", "value"), facts.adapter.rows)]]


def _mlx_generation(facts: CardFacts) -> list[str]:
    """Return the lines of Python that generate text, with the chat template of a chat model."""
    said = json.dumps(example_prompt(facts.model, is_chat=facts.marks.is_chat), ensure_ascii=False)
    if not facts.marks.is_chat:
        return [f"print(generate(model, tokenizer, {said}))"]
    return [
        f'asked = [{{"role": "user", "content": {said}}}]',
        "prompt = tokenizer.apply_chat_template(asked, add_generation_prompt=True)",
        "print(generate(model, tokenizer, prompt))",
    ]


_ROUNDED = "matrices are rounded to 16 bits, and the chat template is in it where there is one."
_CONVERTED = "by default it rounds weights to 16 bits."


def _talk(marks: SpecialTokens) -> Iterator[str]:
    """Yield lines about the form of prompts for the model."""
    if marks.is_chat:
        yield "It is a chat model; its chat template is that of the model that it began with."
    else:
        yield "It is a base model: it continues a text. It has no chat template."
    yield f"A text that it is scored on begins with `{marks.first}`, as documents did in training."


def _data(model: Document) -> Iterator[str]:
    data = model.get("data")
    if not data:
        yield "Not known here."
        return
    contents: Document = data.get("contents") or {}
    counts = [f"{int(data[key]):,} {noun}" for key, noun in _COUNTED if key in data]
    whose = "in the data set" if model["kind"] == "run" else "those of its last round"
    yield f"{', '.join(counts)} ({whose})." if counts else "Counts aren't known."
    yield from _trained_on(model, int(data.get("tokens") or 0))
    yield ""
    yield from _synthetic(data, contents)
    yield ""
    if not contents:
        yield from _sources_of_run(model.get("sources") or [])
        return
    yield from _sources(model.get("sources") or [], contents.get("source") or {})
    yield ""
    yield "Licences of the texts, as their sources state them:"
    yield ""
    yield from _table(("licence", "samples"), _ranked(contents.get("license") or {}))


def _trained_on(model: Document, tokens: int) -> Iterator[str]:
    """Yield a line about how many tokens a run was trained on, and how many passes that makes."""
    trained = sum(int(row.get("tokens") or 0) for row in model.get("log") or ())
    if model["kind"] != "run" or not trained:
        return
    passes = f", {trained / tokens:.2g} passes over it" if tokens else ""
    yield f"Trained on {counted(trained, 'token')} of it{passes}."


def _sources_of_run(known: Sequence[Document]) -> Iterator[str]:
    """Yield the sources of a run, for which no counts of samples are known."""
    if not known:
        yield "Which sources and licences, can't be said: the shards' own list wasn't in reach."
        return
    rows = [
        (str(each["name"]), _source_address(each), str(each.get("license") or "nobody stated one"))
        for each in known
    ]
    yield from _table(("source", "what it is", "licence"), rows)


_COUNTED = (("tokens", "tokens"), ("documents", "samples"), ("bytes", "bytes of text"))


def _synthetic(data: Document, contents: Document) -> Iterator[str]:
    synthetic = int(data.get("synthetic_documents") or 0)
    if not synthetic:
        yield "All of it is real text; none is synthetic."
        return
    whole = int(data.get("documents") or 0)
    by_bytes = ""
    if contents.get("bytes") and contents.get("synthetic_bytes") is not None:
        share = 100 * contents["synthetic_bytes"] / contents["bytes"]
        by_bytes = f", {share:.1f} % of the bytes"
    yield (
        f"{synthetic:,} of {counted(whole, 'sample')} {'is' if synthetic == 1 else 'are'} synthetic"
        f"{by_bytes}. Each was made from a real document of the same sources, and real text was "
        "never left out for it."
    )
    for field, title in (("generator", "Written by"), ("template", "Ways of making them")):
        if contents.get(field):
            yield ""
            yield f"{title}:"
            yield ""
            yield from _table((field, "samples"), _ranked(contents[field]))


def _sources(known: Sequence[Document], counts: Mapping[str, int]) -> Iterator[str]:
    by_name = {str(each["name"]): each for each in known}
    rows = [
        (
            name,
            _source_address(by_name.get(name)),
            str((by_name.get(name) or {}).get("license") or UNKNOWN),
            f"{count:,}",
        )
        for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    yield from _table(("source", "what it is", "licence stated for it", "samples"), rows)


def _source_address(source: Document | None) -> str:
    if source is None:
        return UNKNOWN
    return str(source["address"] or f"{source['kind'].replace('_', ' ')} of a machine")


def _verdict(model: Document) -> Iterator[str]:
    document = model.get("verdict_document")
    if document:
        yield "```text"
        yield from (printable(line) for line in _explained(document))
        yield "```"
    elif model.get("verdict"):
        yield f"{model['verdict']}: {_cell(model.get('reason'))}."
        yield "The whole verdict wasn't in reach."
    else:
        yield "No gate has judged it."


def _explained(document: Document) -> list[str]:
    try:
        return explain(document)
    except (KeyError, TypeError, ValueError):  # a verdict of another version
        return ["the verdict was written by another version; jupiter.json has it as it is"]


def _training(model: Document) -> Iterator[str]:
    lines = training_lines(model)
    if not lines:
        yield "Not known here."
        return
    yield "```text"
    yield from lines
    yield "```"
    yield ""
    yield "Loss (nats per token) at the checkpoints that were recorded:"
    yield ""
    points = [
        (str(row["round"]), f"{point['step']:,}", f"{point['tokens']:,}", f"{point['loss']:.4f}")
        for row in model["log"]
        for point in _thinned(row["points"])
    ]
    yield from _table(("round", "step", "tokens so far", "loss"), points)
    yield ""
    yield "Time of each phase:"
    yield ""
    times = [
        (str(row["round"]), phase, duration(seconds))
        for row in model["log"]
        for phase, seconds in row["phases"].items()
    ]
    yield from _table(("round", "phase", "took"), times)


def _thinned(points: Sequence[Document]) -> Sequence[Document]:
    """Return at most _FIRST_POINTS of the points, evenly spaced, including the last one."""
    step = max(1, -(-len(points) // _FIRST_POINTS))
    return points[::-1][::step][::-1]


def _completions(model: Document) -> Iterator[str]:
    found = model.get("completions") or []
    if not found:
        yield "Nobody has kept what it wrote."
        return
    yield (
        f"{len(found)} texts of which it was shown the beginning, real and held out, at "
        "temperature 0.8; none was chosen. What it wrote stands behind the mark ▶."
    )
    for number, each in enumerate(found, 1):
        text = f"{each['prompt']}▶{each['text']}"
        fence = "`" * max(3, 1 + max(map(len, _LONGEST_TICKS.findall(text)), default=0))
        yield ""
        yield f"{number}.{' (repeats itself)' if each['is_looping'] else ''}"
        yield ""
        yield f"{fence}text"
        yield from (printable(line) for line in text.splitlines())
        yield fence


def _sizes(facts: CardFacts) -> Iterator[str]:
    kinds = ", ".join(f"{count:,} of {kind}" for kind, count in facts.weights.kinds.items())
    stored = size(facts.weights.size_bytes)
    yield f"{facts.weights.parameters:,} parameters ({kinds}), {stored} as Jupiter keeps them."
    yield ""
    shape = [(key, str(facts.config[key])) for key in _SHAPE if key in facts.config]
    yield from _table(("what", "how much"), shape)
    yield ""
    yield from _table(
        ("file", "size"), [(name, size(n)) for name, n in sorted(facts.sizes.items())]
    )


_SHAPE = (
    "model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
    "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings",
    "rope_theta", "tie_word_embeddings", "n_embd", "n_layer", "n_head", "n_positions",
)  # fmt: skip


def _ranked(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(name, f"{count:,}") for name, count in ranked]


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        yield "None."
        return
    yield f"| {' | '.join(headers)} |"
    yield f"|{'---|' * len(headers)}"
    for row in rows[:MAX_ROWS]:
        yield f"| {' | '.join(map(_cell, row))} |"
    if len(rows) > MAX_ROWS:
        yield f"| and {len(rows) - MAX_ROWS} more |{' |' * (len(headers) - 1)}"


def _cell(value: object) -> str:
    """Return an untrusted text, escaped so that Markdown shows it literally in one table cell."""
    return re.sub(r"([\\|`*_\[\]<>#])", r"\\\1", plain(value))
