"""Starts mlx-lm's own server: `python -m jupiterd.workers.serving.mlx_server --model FOLDER ...`.

Owns what it needs told beside its arguments: what mlx-lm misreads in a folder, a queue for many
connections at a time (else some of 32 are reset), single precision on processors, where half
precision takes two to five times as long, that whoever asks must have the key, which its server
knows nothing of, how likely the tokens were that it wrote, that torch isn't imported for a
tokenizer, and that the process ends when the thread dies that loads the model and writes: mlx-lm's
own goes on with status 503 for ever. Doesn't know requests.
"""

import argparse
import hmac
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import wraps
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from jupiterd.adapter_folder import base_beside
from jupiterd.protocol.engine_key import KEY_VARIABLE
from jupiterd.workers.mlx_folder import older_rope_fields, read_config
from jupiterd.workers.serving.without_torch import without_torch

WAITING_CONNECTIONS: Final = 512
MOST_REASON_CHARACTERS: Final = 400


def main(arguments: list[str]) -> None:
    """Answer until the process is ended."""
    without_torch()
    from mlx_lm import server

    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    folder = Path(parser.parse_known_args(arguments)[0].model)
    ThreadingHTTPServer.request_queue_size = WAITING_CONNECTIONS
    told: Any = server
    told.load = loading(told.load, older_rope_fields(read_config(folder)))
    if key := os.environ.get(KEY_VARIABLE):
        ask_for_key(told.APIHandler, key)
    end_with_thread(told.ResponseGenerator)
    tell_logprobs(told.APIHandler)
    server.main()


def tell_logprobs(handler: Any) -> None:  # noqa: ANN401 - mlx-lm's handler of requests
    """Have answers tell of the tokens that were written, as text.

    mlx-lm's own tell of the likeliest token in the place of the written one, and of pieces of its
    vocabulary in the place of text.
    """
    respond = handler.generate_response

    @wraps(respond)
    def responded(self: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as above
        likely, top = options.pop("token_logprobs", None), options.pop("top_tokens", None)
        response = respond(self, *arguments, **options)
        if likely:
            tokenizer = self.response_generator.model_provider.tokenizer
            tops = top or [()] * len(likely)
            rows = zip(options["tokens"], likely, tops, strict=True)
            response["choices"][0]["logprobs"] = {
                "content": [
                    _logprob(tokenizer, token, logprob)
                    | {"top_logprobs": [_logprob(tokenizer, *each) for each in _ranked(others)]}
                    for token, logprob, others in rows
                ]
            }
        return response

    handler.generate_response = responded


def _ranked(others: Iterable[dict[str, Any]]) -> list[tuple[int, float]]:
    """Return tokens and how likely each was, the likeliest first."""
    found = [(int(each["id"]), float(each["logprob"])) for each in others]
    return sorted(found, key=lambda each: -each[1])


def _logprob(tokenizer: Any, token: int, logprob: float) -> dict[str, Any]:  # noqa: ANN401
    text = str(tokenizer.decode([token]))
    return {"id": token, "token": text, "bytes": list(text.encode()), "logprob": logprob}


def end_with_thread(generator: Any) -> None:  # noqa: ANN401 - mlx-lm's, which has the thread
    """Have the process end, with status 1 and the reason as its last line, when the thread dies."""
    write = generator._generate  # noqa: SLF001 - where mlx-lm loads the model, and writes

    @wraps(write)
    def watched(self: Any) -> None:  # noqa: ANN401 - as above
        try:
            write(self)
        except BaseException as error:  # noqa: BLE001 - nothing else can be done after any
            end_process(error)

    generator._generate = watched  # noqa: SLF001


def end_process(error: BaseException) -> None:
    """End this process at once, whatever its threads do."""
    traceback.print_exception(error)
    words = " ".join(str(error).split())[:MOST_REASON_CHARACTERS]
    sys.stderr.write(f"mlx-lm ended: {type(error).__name__}: {words}\n")
    sys.stderr.flush()
    os._exit(1)


def ask_for_key(handler: Any, key: str) -> None:  # noqa: ANN401 - mlx-lm's handler of requests
    """Have its server answer those alone who send the key, but for whether it is there."""
    for method in ("do_GET", "do_POST"):
        setattr(handler, method, _keyed(getattr(handler, method), f"Bearer {key}".encode()))


def _keyed(answer: Callable[[Any], None], expected: bytes) -> Callable[[Any], None]:
    @wraps(answer)
    def answered(handler: Any) -> None:  # noqa: ANN401 - as above
        given = (handler.headers.get("Authorization") or "").encode("utf-8", "replace")
        if handler.path == "/health" or hmac.compare_digest(given, expected):
            answer(handler)
        else:
            handler.send_error(HTTPStatus.UNAUTHORIZED)

    return answered


def loading(load: Callable[..., Any], told: dict[str, Any]) -> Callable[..., Any]:
    """Return mlx-lm's `load` with fields of config.json told again, and with quick weights."""

    @wraps(load)
    def loaded(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as mlx-lm's
        folder = Path(arguments[0]) if arguments else Path()
        base = base_beside(folder)
        places = arguments if base is None else (str(base), *arguments[1:])
        found = load(*places, **options, model_config=dict(told))
        if base is not None:
            from jupiterd.workers.adapters.mlx_merge import merge  # with transformers, after mlx-lm

            merge(found[0], folder)
        _quicken(found[0])
        return found

    return loaded


def _quicken(model: Any) -> None:  # noqa: ANN401 - mlx-lm's model
    """Make the weights of a model on a processor single precision; no others."""
    import mlx.core as mx

    if mx.default_device().type == mx.DeviceType.cpu:
        model.set_dtype(mx.float32)
        mx.eval(model.parameters())


if __name__ == "__main__":
    main(sys.argv[1:])
