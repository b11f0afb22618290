"""The command lines of engines."""

import pytest

from jupiterd.cluster.serving.engine_choice import CPU, CUDA, ENGINES, LLAMA, MLX, TRANSFORMERS
from jupiterd.cluster.serving.engine_command import EngineOrder, engine_command


def order(engine: str, **changes: object) -> EngineOrder:
    fields: dict[str, object] = {
        "engine": engine, "model": "/models/m", "context_tokens": 512, "answers": 4, "threads": 2,
    }  # fmt: skip
    return EngineOrder(**(fields | changes))  # pyright: ignore[reportArgumentType]


def after(argv: tuple[str, ...], name: str) -> str:
    return argv[argv.index(name) + 1]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_listens_on_the_loopback_alone_on_any_free_port(engine: str):
    argv = engine_command(order(engine), "python").argv
    assert (after(argv, "--host"), after(argv, "--port")) == ("127.0.0.1", "0")
    assert "/models/m" in argv


@pytest.mark.parametrize("engine", ENGINES)
def test_no_engine_runs_code_that_came_with_a_model(engine: str):
    assert "--trust-remote-code" not in engine_command(order(engine), "python").argv


def test_llama_cpp_has_a_context_for_each_answer_at_a_time():
    argv = engine_command(order(LLAMA), "python").argv
    assert (after(argv, "--ctx-size"), after(argv, "--parallel")) == ("2048", "4")


def test_llama_cpps_own_program_is_started_where_it_is_there():
    argv = engine_command(order(LLAMA, program="/usr/bin/llama-server"), "python").argv
    assert argv[0] == "/usr/bin/llama-server"
    assert "--jinja" in argv


def test_transformers_batches_on_a_gpu_alone_and_leaves_memory_to_others():
    argv = engine_command(order(TRANSFORMERS, device=CUDA), "python").argv
    assert float(after(argv, "--cb-max-memory-percent")) <= 0.9
    assert "--continuous-batching" not in engine_command(order(TRANSFORMERS), "python").argv
    assert after(engine_command(order(TRANSFORMERS), "python").argv, "--device") == CPU


def test_mlx_lm_keeps_no_more_of_prompts_than_it_is_allowed():
    argv = engine_command(order(MLX, cache_bytes=1 << 20), "python").argv
    assert after(argv, "--prompt-cache-bytes") == str(1 << 20)
