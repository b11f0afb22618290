"""`jupiterctl model ...`: lists, shows, exports, promotes and asks models, and talks to them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from jupiterd.ctl.chat.command import chat
from jupiterd.ctl.commands import Group
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.model.model_eval import eval_model
from jupiterd.ctl.options.adapter_base import base_option
from jupiterd.ctl.options.values import SERVED_MODEL
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.serve.command import serve
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import StudentOnTrialError, UsageError

FORMATS = ("hf", "mlx", "gguf")

READING_S = 60.0
"""Seconds to wait for small files of a model from other nodes."""

FETCHING_S = 3600.0
"""Seconds that an export waits for weights from other nodes."""


@click.group(cls=Group)
def command() -> None:
    """The models that rounds and training runs have made."""


command.add_command(chat)
command.add_command(serve)
command.add_command(eval_model)


@command.command("list")
@click.pass_obj
def list_models(invocation: Invocation) -> None:
    """List the candidates of each round and the models of training runs, the newest first.

    \b
    Examples:
      jupiterctl model list
      jupiterctl model list -o json | jq -r '.models[] | select(.writes).id'
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask
    from jupiterd.ctl.output.model_lines import model_table

    document = ask(invocation.state_dir, "models")
    Console.of(invocation).show_list(document, "models", lambda: model_table(document))


@command.command()
@click.argument("model", metavar="MODEL", type=SERVED_MODEL)
@click.pass_obj
def show(invocation: Invocation, model: str) -> None:
    """Show a model: its verdict, how it was trained and on what, and what it writes.

    MODEL is DOMAIN/ROUND or RUN/ROUND, a training run's name, promoted, base (what its cycle began
    with; MODEL/base, what that one's training began with), or the beginning of an id; a domain
    alone means its newest model. All commands know these names.

    \b
    Examples:
      jupiterctl model show promoted
      jupiterctl model show python/2
      jupiterctl model show 3f2a91bc -o json | jq .model.completions
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask_over_grpc
    from jupiterd.ctl.chat.model_names import stored_model_called
    from jupiterd.ctl.output.model_lines import model_lines

    name = stored_model_called(model, "model show")
    document = ask_over_grpc(invocation.state_dir, f"model/{name}", READING_S)
    Console.of(invocation).show(document, lambda: model_lines(document["model"]))


@command.command()
@click.argument("model", metavar="MODEL", type=SERVED_MODEL)
@click.option(
    "--to",
    metavar="FOLDER",
    required=True,
    type=click.Path(path_type=Path),
    help="A folder that isn't there yet.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="hf",
    show_default=True,
    help="hf: transformers, vLLM, ...; mlx: mlx-lm; gguf: llama.cpp, Ollama.",
)
@click.option(
    "--converter",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="llama.cpp's convert_hf_to_gguf.py, to write gguf with it.",
)
@base_option
@click.option("--merge", is_flag=True, help="Write an adapter and its base as one whole model.")
@click.option(
    "--lm-eval",
    is_flag=True,
    help="Add tasks for lm-evaluation-harness: the held-out text that it was judged on.",
)
@click.pass_obj
def export(
    invocation: Invocation,
    *,
    model: str,
    to: Path,
    form: str,
    lm_eval: bool,
    **how: Any,
) -> None:
    """Write a model into a folder of its own, with a model card.

    MODEL is named as model show has it: promoted, base, DOMAIN/ROUND, a training run's name, ...
    The card says what it was trained on, under which licences, how, and what the gate said of it.
    Any node can do it: it fetches what it lacks first. hf and mlx are the same files, for both
    libraries read them; gguf is one file, and models that aren't known here need llama.cpp's
    converter for it. An adapter is written alone, as peft and mlx-lm read it, or merged with its
    base into a whole model; MODEL may be the folder of one of peft or mlx-lm, too. --lm-eval writes
    held-out text into the folder: who publishes it can't trust scores on it any more.

    \b
    Examples:
      jupiterctl model export promoted --to ./python-1m
      jupiterctl model export 3f2a91bc --format mlx --to ./for-my-mac
      jupiterctl model export python/2 --lm-eval --to ./python-1m
      jupiterctl model export python --format gguf --to ./gguf
      jupiterctl model export my-tuned --merge --to ./whole
      jupiterctl model export ./their-adapter --base ./model --merge --format gguf --to ./gguf
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask_over_grpc
    from jupiterd.ctl.chat.model_names import stored_model_called
    from jupiterd.ctl.model.adapter_export import adapter_document
    from jupiterd.ctl.model.gguf import named_converter
    from jupiterd.ctl.model.model_export import write_model

    if lm_eval and form == "gguf":
        raise UsageError("--lm-eval goes with --format hf or mlx", "jupiterctl model export --help")
    state_dir, program = invocation.state_dir, named_converter(how["converter"])
    document, add = adapter_document(model, how["base"], state_dir), None
    if document is None or lm_eval:
        name = stored_model_called(model, "model export")
        add = _tasks_of(invocation, name) if lm_eval else None
        document = ask_over_grpc(state_dir, f"model_export/{name}", FETCHING_S)["model"]
    written = write_model(document, form, to, program, add, merges=how["merge"])
    Console.of(invocation).show(
        {"schema": SCHEMA, "model": document["id"], "format": form, **written.to_plain()},
        lambda: [f"{to}: {document['name']} for {written.reader}", *written.file_lines()],
    )


@command.command()
@click.argument("model", metavar="MODEL")
@dry_run
@click.pass_obj
def promote(invocation: Invocation, model: str) -> None:
    """Let a round's model generate in its cycle, whatever the gate said.

    It holds from the next round on, of a cycle that has ended where it is extended: a tenth of the
    prompts first, then all of those that it can do. Where the domain has no templates, nothing is
    generated: it is the model that `promoted` means, from now on. `jupiterctl cycle rollback` takes
    it back. Where that ends another student's trial, it asks once more, or --yes must be given.

    \b
    Examples:
      jupiterctl model promote python/2
      jupiterctl model promote 3f2a91bc --yes
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.chat.model_names import stored_model_called
    from jupiterd.ctl.orders import order
    from jupiterd.ctl.output.next_round import promoted_lines
    from jupiterd.protocol.commands.cycle_commands import PromoteModel

    console, model = Console.of(invocation), stored_model_called(model, "model promote")
    console.confirm(f"promote {model}, whatever the gate said?", invocation)
    promote = PromoteModel(model=model, replaces=invocation.is_confirmed)
    try:
        done = order(invocation.state_dir, promote)
    except StudentOnTrialError as error:
        if not console.can_ask:
            raise
        console.confirm(f"{error.message}: go on?", invocation)
        done = order(invocation.state_dir, replace(promote, replaces=True))
    console.show(done, lambda: promoted_lines(done))


def _tasks_of(invocation: Invocation, model: str) -> Callable[[Path, Mapping[str, Any]], None]:
    """Return a function that writes a candidate's lm-evaluation-harness tasks into its folder."""
    from jupiterd.ctl.calls import ask_over_grpc
    from jupiterd.ctl.model.lm_eval_export import write_tasks

    held_out = ask_over_grpc(invocation.state_dir, f"held_out/{model}", FETCHING_S)["held_out"]
    return lambda folder, document: write_tasks(folder, document, held_out)
