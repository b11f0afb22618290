"""A conversation as a file.

Pure. Owns both forms: Markdown for people, and JSON with OpenAI's messages for programs. Doesn't
know files.
"""

import json

from jupiterd.ctl.chat.partner import Partner
from jupiterd.ctl.chat.screen.shown_text import shown_text
from jupiterd.ctl.chat.talk import Talk
from jupiterd.document_schema import SCHEMA


def as_json(talk: Talk) -> str:
    """Return the conversation with each partner as messages."""
    told = [
        {"model": partner.facts.name, "messages": _messages(partner)} for partner in talk.partners
    ]
    return json.dumps({"schema": SCHEMA, "conversations": told}, indent=2) + "\n"


def as_markdown(talk: Talk) -> str:
    """Return the conversation for people, each partner below the other."""
    return "\n".join(block for partner in talk.partners for block in _blocks(partner))


def _messages(partner: Partner) -> list[dict[str, str]]:
    conversation = partner.conversation
    said = [{"role": "system", "content": conversation.system}] if conversation.system else []
    for turn in conversation.turns:
        said.append({"role": "user", "content": turn.asked})
        said.append({"role": "assistant", "content": turn.answered})
    return said


def _blocks(partner: Partner) -> list[str]:
    blocks = [f"# A conversation with {partner.facts.title}\n"]
    titles = {"system": "System", "user": "You", "assistant": partner.facts.title}
    for message in _messages(partner):
        title, content = titles[message["role"]], shown_text(message["content"]).strip("\n")
        blocks.append(f"**{title}**\n\n{content}\n")
    return blocks
