"""Sentences about models and answers of a conversation.

Pure. Owns the words. Doesn't know where they are shown.
"""

import re

from jupiterd.ctl.chat.answer_progress import STOPPED, AnswerProgress
from jupiterd.ctl.chat.endpoint.answer_chunks import ModelFacts
from jupiterd.ctl.chat.talk import Talk
from jupiterd.formats import counted, duration, plain, rate

_READ = re.compile(r"keepalive (\d{1,12})/(\d{1,12})")
"""What mlx_lm.server says while it reads a prompt."""

LOADING_S = 3.0
"""Seconds after which an answer that hasn't begun is said to wait for the model itself."""


def model_line(facts: ModelFacts) -> str:
    """Return what a model is and where it answers."""
    where = f" on {facts.place}" if facts.place else ""
    context = f", {facts.context_tokens:,} tokens of context" if facts.context_tokens else ""
    kinds = {True: "chats", False: "completes what you type", None: "answers"}
    also = f" ({facts.called})" if facts.called not in {"", facts.name} else ""
    return f"{facts.title}{also} {kinds[facts.is_chat]}{where}{context}"


def changed_lines(before: ModelFacts, now: ModelFacts) -> list[str]:
    """Return that a name means another model by now; nothing if it doesn't, or nobody said."""
    if not before.called or not now.called or before.called == now.called:
        return []
    return [f"{now.title} is {now.called} by now, and was {before.called}"]


def greeting(talk: Talk) -> list[str]:
    """Return the lines above the first prompt."""
    lines = [model_line(partner.facts) for partner in talk.partners]
    if talk.system and all(partner.completes for partner in talk.partners):
        lines.append("the system's text isn't sent: a model that completes text has no use for it")
    return [*lines, "/help lists commands, Ctrl-C stops an answer, Ctrl-D leaves"]


def waiting_line(writing: AnswerProgress, now_s: float, comment: str = "") -> str:
    """Return what an answer waits for.

    Args:
        writing: the answer, of which there is nothing to read yet.
        now_s: the time, on the clock of the answer.
        comment: what its engine said last, which may be how far it has read the prompt.
    """
    facts, waited_s = writing.facts, now_s - writing.asked_s
    if writing.is_thinking:
        return f"{facts.title} thinks... ({duration(waited_s)})"
    if read := _READ.fullmatch(comment):
        done, all_of_it = (int(each) for each in read.groups())
        return f"{facts.title} reads the prompt: {done:,} of {all_of_it:,} tokens"
    on = f" on {facts.node}" if facts.node else ""
    is_loading = facts.is_loaded is False or (facts.is_loaded is None and waited_s > LOADING_S)
    what = "loading" if is_loading else "waiting for"
    return f"{what} {facts.title}{on}... ({duration(waited_s)})"


def forgotten_line(facts: ModelFacts, turns: int) -> str:
    """Return that the context has no room for the whole conversation."""
    size = f" of {facts.context_tokens:,} tokens" if facts.context_tokens else ""
    oldest = counted(turns, "oldest question", "oldest questions")
    left = "is left out" if turns == 1 else "are left out"
    return (
        f"the context{size} of {facts.title} has no room for the whole conversation: "
        f"its {oldest} and what was answered {left}"
    )


def figures_line(writing: AnswerProgress, talk: Talk) -> str:
    """Return how fast an answer was written, and why it ended where that isn't usual."""
    speed = [] if writing.tokens_per_s is None else [rate(writing.tokens_per_s)]
    first_s = writing.first_token_s
    first = [] if first_s is None else [f"first after {first_s:.2f} s"]
    parts = [counted(writing.tokens, "token"), *speed, *first, *_ending(writing, talk)]
    if talk.is_verbose:
        parts += _more(writing)
    name = f"{writing.facts.title}: " if len(talk.partners) > 1 else ""
    return name + ", ".join(parts)


def _ending(writing: AnswerProgress, talk: Talk) -> list[str]:
    if writing.finish == STOPPED:
        return ["stopped"]
    return [f"cut there: {_what_goes_on(talk)}"] if writing.finish == "length" else []


def _what_goes_on(talk: Talk) -> str:
    if not talk.is_conversation:
        return "--max-tokens NUMBER lets it write more"
    if len(talk.partners) == 1 and talk.first.completes:
        return "/more goes on"
    return "/set max_tokens NUMBER lets it write more"


def _more(writing: AnswerProgress) -> list[str]:
    facts = writing.facts
    prompt = writing.prompt_tokens
    return [
        *([] if prompt is None else [f"prompt {counted(prompt, 'token')}"]),
        *([f"context {facts.context_tokens:,}"] if facts.context_tokens else []),
        *([f"on {facts.place}"] if facts.place else []),
    ]


def setting_lines(talk: Talk) -> list[str]:
    """Return what `/show` tells."""
    fields = talk.sampling.fields()
    values = ", ".join(f"{name} {value:g}" for name, value in fields.items())
    return [
        *(model_line(partner.facts) for partner in talk.partners),
        f"system: {plain(talk.system) if talk.system else '(none)'}",
        f"values: {values or '(the usual ones)'}",
        f"turns: {len(talk.first.conversation.turns)}",
    ]
