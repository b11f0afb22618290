"""`jupiterctl data ...`: data sets, and the audit of what was trained on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from jupiterd.ctl.commands import Group
from jupiterd.ctl.data.data_samples import samples
from jupiterd.ctl.hub.names import hub_name
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.options.wait_options import UNTIL_ITS_END, check_wait, wait_options
from jupiterd.ctl.output.console import Console
from jupiterd.cycle.training.architectures import MAX_VOCAB
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import UnhealthyError, UsageError
from jupiterd.formats import counted, plain
from jupiterd.ids import short
from jupiterd.path_text import path_text

NOUN = "data"

FETCHING_S = 3600.0
"""Seconds that an export waits for samples from other nodes."""


@click.group(cls=Group)
def command() -> None:
    """Text as data sets, made once and carried to the nodes that train on it."""


@command.command()
@click.argument("text", metavar="FOLDER|FILE|DATASET")
@click.option("--name", metavar="NAME", default="", help="What to call it; the folder's name.")
@click.option("--max-tokens", type=click.IntRange(1), help="End after so many tokens.")
@click.option(
    "--tokenizer",
    metavar="NAME|FOLDER|ORG/NAME",
    help="A data set's, a folder's, or a hub model's; else one is trained.",
)
@click.option("--vocab-size", type=click.IntRange(257, MAX_VOCAB), help="Of one that is trained.")
@click.option("--holdout", type=click.FloatRange(0.0, 0.5), help="Share held out; 0.05.")
@click.option(
    "--loss-on",
    type=click.Choice(("all", "answers")),
    help="Of messages, or prompt and completion; answers.",
)
@click.option("--field", metavar="NAME", help="What holds the text in a table; text.")
@click.option("--subset", metavar="NAME", help="Of a Hugging Face data set, such as 20231101.es.")
@click.option("--split", metavar="NAME", help="Of a Hugging Face data set; train.")
@wait_options(UNTIL_ITS_END)
@dry_run
@click.pass_obj
def prepare(
    invocation: Invocation,
    *,
    text: str,
    name: str,
    tokenizer: str | None,
    wait: bool,
    timeout: float | None,
    **given: Any,
) -> None:
    """Make shards of tokens of text, once; `train start --data NAME` trains on them.

    Text is a folder or file on this machine, or the name of a Hugging Face data set. Part of the
    documents is held out, for the val_bpb of every model that is trained on the rest.

    Lines of JSON may be instruction data, as mlx-lm and TRL read it: `messages`, or `prompt` and
    `completion`. The tokenizer's chat template is applied, and the loss counts on answers alone.

    \b
    Examples:
      jupiterctl data prepare ./texts --name letters --wait
      jupiterctl data prepare ./texts --tokenizer Qwen/Qwen3-0.6B
      jupiterctl data prepare wikimedia/wikipedia --subset 20231101.es --max-tokens 100000000
    """  # noqa: D301 - click's mark for lines that keep their ends
    check_wait(wait=wait, timeout=timeout)
    options = {key: value for key, value in given.items() if value is not None}
    known: str | None = None
    if tokenizer is not None and ("/" in tokenizer or Path(tokenizer).exists()):
        options["tokenizer_path"] = _tokenizer_path(tokenizer)
    elif tokenizer is not None:
        known = tokenizer
    from jupiterd.ctl.orders import order
    from jupiterd.ctl.sources.data_source import source_arguments
    from jupiterd.protocol.commands.data_commands import PrepareData

    console = Console.of(invocation)
    arguments = source_arguments(invocation, text, options, name)
    prepared = order(invocation.state_dir, PrepareData(**arguments, tokenizer=known))
    begun = f"data set {prepared['name']} ({short(str(prepared['data']))}) is being made"
    if not wait:
        console.show(prepared, lambda: [begun, "jupiterctl data list shows when it is ready"])
        return
    if console.is_table:
        console.line(begun)
    _follow_to_the_end(invocation, str(prepared["data"]), timeout)


def _tokenizer_path(named: str) -> str:
    """Return a folder with a tokenizer: on this machine, or downloaded from the hub."""
    folder = Path(named).expanduser()
    if (name := hub_name(named)) and not folder.exists():
        from jupiterd.ctl.hub.tokenizer import tokenizer_folder

        folder = tokenizer_folder(name)
    return path_text(folder.resolve())


@command.command()
@click.argument("data", metavar="[NAME]", required=False)
@dry_run
@click.pass_obj
def stop(invocation: Invocation, data: str | None) -> None:
    """Stop making a data set; without NAME the newest that is being made.

    Nothing of it can be used. `jupiterctl data prepare` with the same name starts again.

    \b
    Examples:
      jupiterctl data stop
      jupiterctl data stop letters --yes
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.data_commands import StopData

    console = Console.of(invocation)
    console.confirm(f"stop making {data or 'the newest data set'}?", invocation)
    stopped = order(invocation.state_dir, StopData(data=data or ""))
    console.show(stopped, lambda: [f"data set {_called(stopped)} is no longer being made"])


@command.command()
@click.argument("data", metavar="NAME")
@dry_run
@click.pass_obj
def remove(invocation: Invocation, data: str) -> None:
    """Remove a data set from the list: one that failed, or that nobody wants any more.

    NAME is its name or id; of several of one name the newest is removed. No training may need it.
    What was made stays in the stores of the machines, for models that were trained on it name it.

    \b
    Examples:
      jupiterctl data remove letters
      jupiterctl data remove 3f2a91bc --yes
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.data_commands import RemoveData

    console = Console.of(invocation)
    console.require_consent(f"remove data set {data}? It can't be taken back", invocation)
    removed = order(invocation.state_dir, RemoveData(data=data))
    console.show(removed, lambda: [f"data set {_called(removed)} is removed; its name is free"])


def _called(row: Mapping[str, Any]) -> str:
    return f"{plain(row['name'])} ({short(str(row['data']))})"


@command.command("list")
@click.pass_obj
def list_data(invocation: Invocation) -> None:
    """List the data sets of the cluster and the data of each round, the newest first.

    \b
    Examples:
      jupiterctl data list
      jupiterctl data list -o json | jq -r '.data[].name'
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask
    from jupiterd.ctl.output.data_lines import data_table

    document = ask(invocation.state_dir, NOUN)
    Console.of(invocation).show_list(document, NOUN, lambda: data_table(document))


@command.command()
@click.argument("run", metavar="[RUN]", required=False)
@click.pass_obj
def audit(invocation: Invocation, run: str | None) -> None:
    """Prove that each sequence was trained on exactly once in every pass.

    RUN is a cycle or training run, by its id or name; without it all of them are looked at. The
    ranges that checkpoints contain must cover the data's order from its beginning to the last
    checkpoint without gap or overlap, and their tokens must be as many as were reported. Exits with
    8 where that isn't so.

    \b
    Examples:
      jupiterctl data audit
      jupiterctl data audit 3f2a91bc -o json
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask
    from jupiterd.ctl.output.data_lines import audit_lines

    document = ask(invocation.state_dir, f"audit/{run}" if run else "audit")
    Console.of(invocation).show(document, lambda: audit_lines(document))
    if wrong := [each for each in document["audit"] if not each["ok"]]:
        names = ", ".join(f"{each['name']} ({short(each['id'])})" for each in wrong)
        raise UnhealthyError(
            f"not every sequence was trained on exactly once: {names}",
            "jupiterctl data audit -o json lists every range",
        )


@command.command()
@click.argument("what", metavar="SAMPLE|SHARDS:OFFSET")
@click.pass_obj
def why(invocation: Invocation, what: str) -> None:
    """Show where a piece of training text comes from: source, licence, filters, who made it.

    SAMPLE is a sample's id or its beginning. SHARDS is a run's name or id, RUN/ROUND or the
    beginning of the shards' id; OFFSET is the number of a token.

    \b
    Examples:
      jupiterctl data why 3f2a91bc
      jupiterctl data why python:120000
      jupiterctl data why python/2:0 -o json | jq .why.sample.license
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask
    from jupiterd.cycle.data.provenance_lines import why_lines

    document = ask(invocation.state_dir, f"why/{what}")
    Console.of(invocation).show(document, lambda: why_lines(document["why"]))


@command.command()
@click.argument("run", metavar="RUN[/ROUND]")
@click.option("--format", "form", type=click.Choice(("jsonl", "parquet")), default="jsonl")
@click.option(
    "--to", metavar="FILE", required=True, type=click.Path(path_type=Path, dir_okay=False)
)
@click.pass_obj
def export(invocation: Invocation, run: str, form: str, to: Path) -> None:
    """Write the samples that a round trains on into a file, each with its provenance.

    RUN is a cycle's domain or id; without ROUND the newest is meant. What was purged since is left
    out. Any node can do it: it fetches what it lacks first. Parquet needs the extra
    jupiterd[parquet].

    \b
    Examples:
      jupiterctl data export python --to python.jsonl
      jupiterctl data export python/2 --format parquet --to python.parquet
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask_over_grpc
    from jupiterd.ctl.data.data_export import write_export

    exported = ask_over_grpc(invocation.state_dir, f"export/{run}", FETCHING_S)["export"]
    written = write_export(exported, form, to)
    Console.of(invocation).show(
        {"schema": SCHEMA, "file": str(to), "format": form, "samples": written},
        lambda: [
            f"{to}: {counted(written, 'sample')} of {exported['name']}, round {exported['round']}"
        ],
    )


@command.command()
@click.option("--source", required=True, metavar="NAME|ADDRESS", help="What is to be left out.")
@click.option("--domain", metavar="NAME", help="Of this domain; that of the latest cycle.")
@click.option("--cycle", metavar="CYCLE", help="Of this cycle alone.")
@dry_run
@click.pass_obj
def purge(invocation: Invocation, source: str, domain: str | None, cycle: str | None) -> None:
    """Leave a source out of all training from now on, and everything that was made from it.

    NAME is that of a source in the domain file, which isn't read any more; ADDRESS, such as
    https://example.org/docs, stands for everything below it too: that of a repository or a table
    for all its files or rows. What earlier rounds made of it stays as it is: their samples,
    tokenizers and models. `jupiterctl data audit` shows what the next round left out, and that it
    has none of it.

    \b
    Examples:
      jupiterctl data purge --source old-docs
      jupiterctl data purge --source https://example.org/forum --domain cooking --yes
    """  # noqa: D301 - click's mark for lines that keep their ends
    if domain is not None and cycle is not None:
        raise UsageError("--domain and --cycle exclude each other", "jupiterctl data purge --help")
    from jupiterd.ctl.orders import order
    from jupiterd.ctl.output.data_lines import purged_lines
    from jupiterd.protocol.commands.data_commands import PurgeSource

    console = Console.of(invocation)
    scope = f" of {domain}" if domain else f" of cycle {cycle}" if cycle else ""
    console.require_consent(f"purge source {source}{scope}? It can't be taken back", invocation)
    command = PurgeSource(source=source, domain=domain, cycle=cycle)
    purged = order(invocation.state_dir, command)
    console.show(purged, lambda: purged_lines(purged))


def _follow_to_the_end(invocation: Invocation, run_id: str, timeout_s: float | None) -> None:
    from jupiterd.ctl.calls import ask
    from jupiterd.ctl.output.data_lines import ready_lines
    from jupiterd.ctl.waiting.follow import conclude, follow

    console = Console.of(invocation)
    ended = follow(invocation.state_dir, run_id, console, timeout_s, NOUN)
    if ended["state"] != "finished":
        conclude(ended, console)
    rows: list[Mapping[str, Any]] = ask(invocation.state_dir, NOUN)["data"]
    row = next(row for row in rows if row["id"] == run_id)
    if console.output != "jsonl":
        console.show({"schema": SCHEMA, NOUN: row}, lambda: ready_lines(row))


command.add_command(samples)
