"""`jupiterctl model serve`: have models answer on a port until Ctrl-C.

Owns the options. Imports what it needs when it runs, so that other commands don't wait for it.
"""

from pathlib import Path

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.options.adapter_base import base_option
from jupiterd.ctl.options.values import SERVED_MODEL


@click.command("serve", cls=GlobalOptionsCommand)
@click.argument("models", metavar="[MODEL]...", nargs=-1, type=SERVED_MODEL)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Where to listen; default: 47480, and 0 lets the system choose.",
)
@click.option("--host", metavar="HOST", help="On which address; default: of this machine alone.")
@click.option(
    "--token",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Clients must send the token in it.",
)
@click.option("--cors", multiple=True, metavar="ORIGIN", help="Pages of that site may ask, too.")
@click.option("--pinned", is_flag=True, help="Go on answering on a GPU that a training wants.")
@click.option(
    "--engine",
    metavar="NAME",
    help="What this machine loads models into: llama.cpp, mlx, vllm or transformers.",
)
@base_option
@dry_run
@click.pass_obj
def serve(  # noqa: PLR0913 - an option each
    invocation: Invocation,
    *,
    models: tuple[str, ...],
    port: int | None,
    host: str | None,
    token: Path | None,
    cors: tuple[str, ...],
    pinned: bool,
    engine: str | None,
    base: str | None,
) -> None:
    """Have models answer on a port, as OpenAI's API has it, until Ctrl-C.

    MODEL is `promoted` unless some are named: that name follows promotions. A model's folder may be
    one, too, and is called by its last part. Whatever speaks
    OpenAI's API can ask there (/v1/chat/completions, /v1/completions, /v1/models), and a browser
    finds a page to chat on. Each request is shown in a line, without its text. The daemon finds a
    machine that has the model. Only this machine reaches the port, unless --host names another
    address, which wants a --token. serve: in jupiter.yaml does the same as long as the daemon runs.

    \b
    Examples:
      jupiterctl model serve
      jupiterctl model serve promoted base --port 8000
      jupiterctl model serve --host 0.0.0.0 --token ./token
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.output.console import Console
    from jupiterd.ctl.serve.serving import WantedEndpoint, serve_until_interrupted
    from jupiterd.ctl.sources.adapter_model import check_base_is_used, usable_model
    from jupiterd.path_text import path_text

    check_base_is_used([*models], base)
    wanted = WantedEndpoint(
        tuple(usable_model(each, base, invocation.state_dir) for each in models),
        port,
        None if host is None else path_text(host),
        None if token is None else path_text(token.absolute()),
        tuple(map(path_text, cors)),
        pinned,
        None if engine is None else path_text(engine),
    )
    serve_until_interrupted(
        invocation.state_dir, wanted, Console.of(invocation), is_dry_run=invocation.is_dry_run
    )
