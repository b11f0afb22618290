"""Starts llama.cpp's server out of the package xllamacpp, with the words of llama-server.

    python -m jupiterd.workers.serving.llama_server --model FILE.gguf --port 0 ...

Owns the translation of these few arguments. Doesn't know requests.
"""

import argparse
import importlib
import os
import sys
import threading
from typing import Any

from jupiterd.protocol.engine_key import KEY_VARIABLE


def main(arguments: list[str]) -> None:
    """Answer until the process is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    for name in ("--port", "--ctx-size", "--parallel", "--threads"):
        parser.add_argument(name, type=int, required=True)
    asked = parser.parse_args(arguments)
    llama_cpp: Any = importlib.import_module("xllamacpp")  # it has no types
    try:
        server = llama_cpp.Server(_params(llama_cpp.CommonParams(), asked))
    except RuntimeError as error:  # its own output has said why
        sys.exit(f"llama.cpp can't load the model: {error}")
    sys.stdout.write(f"listening on {server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()


def _params(params: Any, asked: argparse.Namespace) -> Any:  # noqa: ANN401 - the library's
    params.model.path, params.model_alias = asked.model, {"model"}
    params.hostnames, params.port = [asked.host], asked.port
    if key := os.environ.get(KEY_VARIABLE):
        params.api_keys = [key]
    params.n_ctx, params.n_parallel = asked.ctx_size, asked.parallel
    for cores in (params.cpuparams, params.cpuparams_batch):
        cores.n_threads, cores.poll = asked.threads, 0  # spinning takes the cores from others
    params.fit_params = False  # the context is planned already, and it reads the model twice
    params.use_jinja, params.warmup, params.offline = True, False, True
    return params


if __name__ == "__main__":
    main(sys.argv[1:])
