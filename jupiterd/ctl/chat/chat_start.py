"""Begins a conversation, or has one prompt answered, as the command line says.

Owns which of both it is, and what the models are before anything is asked. Doesn't know how either
goes on.
"""

import sys
from dataclasses import dataclass

from jupiterd.ctl.chat.answer_round import facts_of
from jupiterd.ctl.chat.chat_session import ChatSession
from jupiterd.ctl.chat.conversation import Conversation
from jupiterd.ctl.chat.model_names import PROMOTED
from jupiterd.ctl.chat.one_answer import answer_once, piped_text, question_of, typed_text
from jupiterd.ctl.chat.partner import Partner
from jupiterd.ctl.chat.sampling import Sampling
from jupiterd.ctl.chat.talk import Talk
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.sources.adapter_model import usable_models


@dataclass(frozen=True)
class Wanted:
    """What the command line says."""

    model: str
    prompt: str
    system: str
    beside: str
    sampling: Sampling
    base: str | None = None
    """What an adapter's folder stands beside; None: it says which."""
    is_verbose: bool = False

    @property
    def named(self) -> tuple[str, str]:
        """Return model and prompt: one argument alone is a prompt if it has a space in it."""
        if self.model and not self.prompt and any(map(str.isspace, self.model)):
            return PROMOTED, self.model
        return self.model or PROMOTED, self.prompt


def start(invocation: Invocation, wanted: Wanted) -> None:
    """Talk until the user leaves, or answer once.

    Raises:
        JupiterError: no daemon answers, there is no such model, it didn't answer, ...
    """
    console = Console.of(invocation)
    model, prompt = wanted.named
    models = usable_models(model, wanted.beside, wanted.base, invocation.state_dir)
    has_terminal = sys.stdin is not None and sys.stdin.isatty() and console.is_terminal
    if prompt or not has_terminal:
        is_awaited = not prompt and console.is_table
        if is_awaited and sys.stdin is not None and sys.stdin.isatty():
            console.notice("type the prompt, and Ctrl-D at its end")
        piped = piped_text(is_awaited=is_awaited)
        text = question_of(prompt, piped, wanted.model)
        answer_once(invocation.state_dir, console, _talk(invocation, wanted, models), text)
        return
    ChatSession(invocation.state_dir, console, _talk(invocation, wanted, models)).converse()


def _talk(invocation: Invocation, wanted: Wanted, models: list[str]) -> Talk:
    facts = facts_of(invocation.state_dir, models)
    partners = [Partner(each, Conversation(typed_text(wanted.system))) for each in facts]
    return Talk(partners, wanted.sampling, is_verbose=wanted.is_verbose)
