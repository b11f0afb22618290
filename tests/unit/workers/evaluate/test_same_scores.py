"""A document's score hardly depends on what computes it, or on what is computed beside it."""

import math
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from jupiterd.workers import thread_share  # noqa: E402
from jupiterd.workers.evaluate import language_model  # noqa: E402
from jupiterd.workers.evaluate.computing_threads import side_by_side  # noqa: E402
from jupiterd.workers.evaluate.device_room import (  # noqa: E402
    GPU_BATCH_TOKENS,
    full_precision,
    gpu_batch_tokens,
    token_bytes,
)
from jupiterd.workers.evaluate.head_nats import HeadBlock, gpu_block, head_nats  # noqa: E402
from jupiterd.workers.evaluate.language_model import LanguageModel  # noqa: E402
from jupiterd.workers.evaluate.text_scorer import PLAIN_HEADS, TextScorer  # noqa: E402
from jupiterd.workers.evaluate.windows import Window  # noqa: E402
from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer  # noqa: E402
from tests.support.workers.data_material import function  # noqa: E402
from tests.support.workers.tiny_models import write_model  # noqa: E402

MOST_BPB = 1e-5
CONTEXT = 48
TEXTS = [function(number, body_lines=number % 9) for number in range(100, 116)]
THREADS = torch.get_num_threads()


@pytest.fixture(autouse=True)
def _same_threads() -> Iterator[None]:
    yield
    torch.set_num_threads(THREADS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model")
    write_model(made, "qwen3", max_position_embeddings=CONTEXT, initializer_range=0.3)
    save_tokenizer(train_tokenizer([function(number) for number in range(40)], 320), made)
    return made


def bits_per_byte(model: TextScorer, batch_windows: int = 8) -> list[float]:
    nats = model.nats(model.encode(TEXTS), batch_windows, lambda _: None)
    sizes = (len(text.encode()) for text in TEXTS)
    return [each / math.log(2) / size for each, size in zip(nats, sizes, strict=True)]


def largest_difference(first: list[float], second: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("batch_windows", [1, 3, 8])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_neither_batches_nor_threads_change_a_score(
    folder: Path, monkeypatch: pytest.MonkeyPatch, batch_windows: int, threads: int
) -> None:
    model = LanguageModel(folder)
    torch.set_num_threads(1)
    expected = bits_per_byte(model)
    assert min(expected) > 1, "these are real scores"
    torch.set_num_threads(threads)
    for tokens in (CONTEXT, 4096):
        monkeypatch.setattr(language_model, "CPU_BATCH_TOKENS", tokens)
        assert largest_difference(bits_per_byte(model, batch_windows), expected) <= MOST_BPB
    monkeypatch.setattr(language_model, "PLAIN_HEADS", PLAIN_HEADS - {"qwen3"})
    assert largest_difference(bits_per_byte(model, batch_windows), expected) <= MOST_BPB


def test_the_same_batches_give_the_same_bits(folder: Path) -> None:
    torch.set_num_threads(3)
    first, second = (bits_per_byte(LanguageModel(folder)) for _ in range(2))
    assert first == second


@pytest.mark.mlx
def test_mlx_scores_as_torch_does(folder: Path) -> None:
    pytest.importorskip("mlx_lm")
    from jupiterd.workers.evaluate.mlx_language_model import MlxLanguageModel

    mlx, plain = bits_per_byte(MlxLanguageModel(folder)), bits_per_byte(LanguageModel(folder))
    assert largest_difference(mlx, plain) <= MOST_BPB


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
def test_a_gpu_scores_as_a_cpu_does_even_where_tf32_is_on(folder: Path) -> None:
    on_cpu = bits_per_byte(LanguageModel(folder))
    model = LanguageModel(folder, "cuda:0")
    assert model.device.type == "cuda"
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert largest_difference(bits_per_byte(model), on_cpu) <= MOST_BPB
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_device_that_torch_cannot_use_is_replaced_by_the_cpu(folder: Path) -> None:
    assert LanguageModel(folder, "gpu").device.type == "cpu"
    assert LanguageModel(folder, "cuda:93").device.type == "cpu" or torch.cuda.is_available()


def test_scores_are_computed_in_whole_floats_and_the_setting_is_put_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, seen = LanguageModel(folder), set[str]()
    whole = model.row_nats

    def watched(*rows: language_model.Tokens) -> list[float]:
        seen.add(torch.get_float32_matmul_precision())
        return whole(*rows)

    monkeypatch.setattr(model, "row_nats", watched)
    torch.set_float32_matmul_precision("medium")
    try:
        bits_per_byte(model)
        assert torch.get_float32_matmul_precision() == "medium"
        with pytest.raises(ZeroDivisionError), full_precision():
            _ = 1 / 0
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert seen == {"highest"}


# The output layer, in blocks


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("block", [HeadBlock(1, 1), HeadBlock(4, 7), HeadBlock(50, 100)])
def test_a_head_in_blocks_costs_what_a_whole_softmax_says(block: HeadBlock, has_bias: bool) -> None:
    torch.manual_seed(0)
    head = torch.nn.Linear(8, 60, bias=has_bias)
    hidden, wanted = 5 * torch.randn(11, 8), torch.randint(0, 60, (11,))
    with torch.inference_mode():
        expected = torch.nn.functional.cross_entropy(head(hidden), wanted, reduction="none")
        found = head_nats(hidden, head, wanted, block)
        assert head_nats(hidden[:0], head, wanted[:0], block).shape == (0,)
    assert torch.allclose(found, expected, atol=1e-5)


def test_memory_bounds_what_a_gpu_takes_at_a_time() -> None:
    gib = 1 << 30
    small, large = token_bytes(384, 1024, 0), token_bytes(1792, 4864, 0)
    assert gpu_batch_tokens(70 * gib, small) == GPU_BATCH_TOKENS
    assert gpu_batch_tokens(2 * gib, large) * large <= gib
    assert gpu_batch_tokens(1, large) == 1
    assert gpu_block(32_768, 70 * gib) == HeadBlock(4096, 32_768)
    assert gpu_block(32_768, gib) == HeadBlock(2048, 32_768)
    assert gpu_block(32_768, 0) == HeadBlock(64, 32_768)


# Batches side by side


def test_results_come_in_order_and_the_threads_are_put_back() -> None:
    torch.set_num_threads(4)
    each: list[int] = []

    def work(number: int) -> int:
        each.append(torch.get_num_threads())
        return number * number

    assert list(side_by_side(work, range(9), 4)) == [number * number for number in range(9)]
    assert list(side_by_side(work, range(2), 4)) == [0, 1]
    assert list(side_by_side(work, range(2), 1)) == [0, 1]
    assert each == [1] * 9 + [2] * 2 + [4] * 2
    assert torch.get_num_threads() == 4


def test_a_batch_that_fails_ends_the_others_and_is_told_as_it_is() -> None:
    torch.set_num_threads(2)
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        raise MemoryError(number)

    with pytest.raises(MemoryError):
        list(side_by_side(work, range(1000), 2))
    assert len(begun) < 1000
    assert torch.get_num_threads() == 2


def test_fewer_compute_at_a_time_as_soon_as_the_share_is_smaller() -> None:
    torch.set_num_threads(4)
    computing, most, guard = 0, list[int](), threading.Lock()

    def work(number: int) -> None:
        nonlocal computing
        if number == 10:
            thread_share.change(1)
        with guard:
            computing += 1
            most.append(computing)
        threading.Event().wait(0.01)
        with guard:
            computing -= 1

    try:
        list(side_by_side(work, range(40), 4))
        assert max(most) > 1
        assert set(most[-20:]) == {1}
        thread_share.take()
        assert torch.get_num_threads() == 1
    finally:
        thread_share.change(THREADS)
        thread_share.take()


def test_short_windows_fill_a_batch_by_their_tokens(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, sizes = LanguageModel(folder), list[int]()
    monkeypatch.setattr(language_model, "CPU_BATCH_TOKENS", 40)

    def counted(batch: list[Window], _: object) -> list[float]:
        sizes.append(len(batch))
        return [1.0] * len(batch)

    monkeypatch.setattr(model, "_window_nats", counted)
    model.nats([[1, 2, 3]] * 30, 8, lambda _: None)
    assert sorted(sizes) == [4, 13, 13]
    sizes.clear()
    model.nats([[1, 2, 3]] * 30, 2, lambda _: None)
    assert set(sizes) == {2}, "where memory ran out there are few, however short they are"
