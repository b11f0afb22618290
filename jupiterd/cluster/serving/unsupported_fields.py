"""Fields of a request that nobody here heeds, though they change what an answer means.

Owns their list: of OpenAI's API, and of what vLLM and llama.cpp have beside it. Such a field is
refused by its name, unless its value says what happens anyway. Whatever isn't listed, such as
`metadata`, `store` or a field of a client's own, is left out. Doesn't know engines.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.cluster.serving.request_error import refused

_USUAL: Final[Mapping[str, tuple[object, ...]]] = {
    "add_generation_prompt": (True,),
    "allowed_token_ids": (),
    "audio": (),
    "bad_words": (),
    "chat_template": (),
    "continue_final_message": (),
    "documents": (),
    "dry_multiplier": (),
    "dynatemp_range": (),
    "function_call": ("none", "auto"),
    "functions": (),
    "grammar": (),
    "guided_choice": (),
    "guided_grammar": (),
    "guided_json": (),
    "guided_regex": (),
    "ignore_eos": (),
    "json_schema": (),
    "length_penalty": (1,),
    "lora": (),
    "min_tokens": (),
    "mirostat": (),
    "modalities": (["text"],),
    "n_probs": (),
    "prompt_logprobs": (),
    "repeat_penalty": (1,),
    "skip_special_tokens": (True,),
    "stop_token_ids": (),
    "structured_outputs": (),
    "truncate_prompt_tokens": (),
    "typical_p": (1,),
    "use_beam_search": (),
    "web_search_options": (),
    "xtc_probability": (),
}
"""Field -> the values that say what happens anyway, beside those that say nothing."""

_OF_CHAT_ALONE: Final[Mapping[str, tuple[object, ...]]] = {
    "messages": (),
    "response_format": ({"type": "text"},),
    "tool_choice": ("none", "auto"),
    "tools": (),
    "top_logprobs": (),
}
_OF_COMPLETIONS_ALONE: Final[Mapping[str, tuple[object, ...]]] = {
    "best_of": (1,),
    "echo": (),
    "suffix": (),
}


UNSUPPORTED: Final = frozenset({*_USUAL, *_OF_CHAT_ALONE, *_OF_COMPLETIONS_ALONE})
"""All of them."""


def check_unsupported_fields(said: Mapping[str, Any], *, is_chat: bool) -> None:
    """Raise RequestError for a field that would change the answer, and is heeded by nobody."""
    table = {**_USUAL, **(_OF_COMPLETIONS_ALONE if is_chat else _OF_CHAT_ALONE)}
    for name, usual in table.items():
        value = said.get(name)
        says_nothing = not value and True not in usual  # false says something where true is usual
        if value is not None and not says_nothing and value not in usual:
            raise refused(f"{name}: this can't be had here; leave it out", name, "unsupported")
