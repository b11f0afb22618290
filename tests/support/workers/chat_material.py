"""Questions and answers, and a tiny tokenizer with a chat template, as chat models have one."""

import json
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from jupiterd.workers.tokens.tokenizer import CONFIG_FILE, save_tokenizer, train_tokenizer

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MARKS = ["<|im_start|>", "<|im_end|>"]
TEXT = ["user assistant system What is plus minus times? It is 123456789.\n"] * 4


def chat_tokenizer(folder: Path, template: str = TEMPLATE) -> Path:
    """Write one of 300 entries at the most; return its folder."""
    tokenizer = train_tokenizer(TEXT, 298)
    tokenizer.add_special_tokens(MARKS)
    save_tokenizer(tokenizer, folder)
    config = json.loads((folder / CONFIG_FILE).read_text())
    (folder / CONFIG_FILE).write_text(json.dumps(config | {"chat_template": template}))
    return folder


def loaded(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)


def ids_of(tokenizer: Any, messages: list[dict[str, str]], *, may_answer: bool = False) -> Any:
    return tokenizer.apply_chat_template(
        messages, add_generation_prompt=may_answer, return_dict=False
    )


def asked(question: str) -> dict[str, str]:
    return {"role": "user", "content": question}


def answered(answer: str) -> dict[str, str]:
    return {"role": "assistant", "content": answer}


def rows_of_length(tokenizer: Any, count: int, tokens: int) -> list[dict[str, str]]:
    """Return questions and answers that all have so many tokens by the template."""
    rows: list[dict[str, str]] = []
    for number in range(count):
        row = {"prompt": f"What is {number % 9}*{number % 7}?", "completion": f"{number % 9}!"}
        while len(ids_of(tokenizer, pair(row))) < tokens:
            row["prompt"] += "q"
        assert len(ids_of(tokenizer, pair(row))) == tokens
        rows.append(row)
    return rows


def pair(row: dict[str, str]) -> list[dict[str, str]]:
    return [asked(row["prompt"]), answered(row["completion"])]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
