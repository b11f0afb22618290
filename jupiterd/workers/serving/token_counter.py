"""Counts the tokens of prompts, as the engine that is to read them would.

    python -m jupiterd.workers.serving.token_counter FOLDER DESCRIPTOR

Owns a process that has a model's tokenizer: each line that comes over the socket is a request's
prompt as JSON (`prompt`, or `messages` and `tools`), each answer a line with `tokens`, or `error`.
Ends with its socket. Doesn't know contexts.
"""

import json
import socket
import sys
from collections.abc import Mapping
from typing import Any

from jupiterd.workers.serving.without_torch import without_torch


def main(folder: str, descriptor: int) -> None:
    """Answer until nobody asks any more."""
    without_torch()
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    with socket.socket(fileno=descriptor) as link, link.makefile("rwb") as lines:
        for line in lines:
            lines.write(json.dumps(_answer(tokenizer, json.loads(line))).encode() + b"\n")
            lines.flush()


def _answer(tokenizer: Any, asked: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    try:
        return {"tokens": _tokens(tokenizer, asked)}
    except Exception as error:  # noqa: BLE001 - a template is a program of a stranger
        return {"error": str(error)}


def _tokens(tokenizer: Any, asked: Mapping[str, Any]) -> int:  # noqa: ANN401
    if "messages" in asked:
        fed = tokenizer.apply_chat_template(
            asked["messages"],
            tools=asked.get("tools"),
            add_generation_prompt=True,
            return_dict=True,
        )
        return len(fed["input_ids"])
    prompt = asked["prompt"]
    return len(prompt) if isinstance(prompt, list) else len(tokenizer(prompt)["input_ids"])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
