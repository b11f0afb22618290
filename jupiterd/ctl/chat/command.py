"""`jupiterctl model chat`: talk to a model, or have it answer one prompt.

Owns the options. Imports what it needs when it runs, so that other commands don't wait for it.
"""

import math

import click

from jupiterd.ctl.chat.sampling import LARGEST_SEED
from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.options.adapter_base import base_option
from jupiterd.ctl.options.values import SERVED_MODEL


def _number(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """Refuse "nan", which is within any bounds as click compares."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is no number")
    return value


@click.command("chat", cls=GlobalOptionsCommand)
@click.argument("model", metavar="[MODEL]", required=False, default="", type=SERVED_MODEL)
@click.argument("prompt", metavar="[PROMPT]", nargs=-1)
@click.option("--system", metavar="TEXT", default="", help="Tell the model this before all else.")
@click.option("--beside", metavar="MODEL", default="", help="Have a second model answer, too.")
@base_option
@click.option(
    "--temperature",
    type=click.FloatRange(0, 2),
    callback=_number,
    metavar="NUMBER",
    help="0 always takes the likeliest token.",
)
@click.option(
    "--top-p",
    type=click.FloatRange(0, 1, min_open=True),
    callback=_number,
    metavar="SHARE",
    help="Draw from the likeliest tokens that have this share.",
)
@click.option(
    "--max-tokens", type=click.IntRange(1), metavar="N", help="End an answer after so many tokens."
)
@click.option(
    "--seed",
    type=click.IntRange(0, LARGEST_SEED),
    metavar="N",
    help="Draw the same answer each time.",
)
@click.option("--verbose", is_flag=True, help="Tell all figures of an answer.")
@click.pass_obj
def chat(  # noqa: PLR0913 - an option each
    invocation: Invocation,
    *,
    model: str,
    prompt: tuple[str, ...],
    system: str,
    beside: str,
    base: str | None,
    temperature: float | None,
    top_p: float | None,
    max_tokens: int | None,
    seed: int | None,
    verbose: bool,
) -> None:
    """Talk to a model, or have it answer PROMPT; the daemon finds a machine that has it.

    MODEL is `promoted` unless it is named: the newest cycle's promoted model. It may be
    DOMAIN/ROUND, a training run's name, the beginning of an id, a model's folder, or `base`, which
    that cycle began from; with --beside, base is what MODEL's own cycle or run began from. One
    argument alone is PROMPT if it has a space in it, and else MODEL.

    Models with a chat template chat by it; others go on with the text that you type. In a
    conversation /help lists the commands, Ctrl-C stops an answer, and Ctrl-D leaves. What comes
    through a pipe is the prompt, or stands above PROMPT.

    \b
    Examples:
      jupiterctl model chat
      jupiterctl model chat python/2 --beside base
      jupiterctl model chat "def fibonacci(n):" --max-tokens 60
      git diff | jupiterctl model chat "What does this change?"
      jupiterctl model chat python/2 "def f(" --seed 1 -o json | jq -r '.answers[0].text'
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.chat.chat_start import Wanted, start
    from jupiterd.ctl.chat.sampling import Sampling

    sampling = Sampling(temperature, top_p, max_tokens, seed)
    asked = Wanted(model, " ".join(prompt), system, beside, sampling, base, is_verbose=verbose)
    start(invocation, asked)
