import math
import shutil

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

torch.set_num_threads(1)  # tiny matrices: more threads only wait for each other

from jupiterd.cycle.gate.case import Findings, GateSettings  # noqa: E402
from jupiterd.cycle.gate.decision import Decision  # noqa: E402
from jupiterd.cycle.gate.verdict import decide  # noqa: E402
from jupiterd.cycle.generation.completions import COMPLETIONS_FILE, read_completions  # noqa: E402
from jupiterd.errors import CorruptArtifactError  # noqa: E402
from jupiterd.protocol.frames import TaskFinished  # noqa: E402
from jupiterd.store.artifacts import ArtifactStore  # noqa: E402
from jupiterd.workers.evaluate.documents import ScoringLimits  # noqa: E402
from jupiterd.workers.evaluate.language_model import PLAIN_HEADS, LanguageModel  # noqa: E402
from jupiterd.workers.evaluate.saved_nats import SavedNats  # noqa: E402
from jupiterd.workers.evaluate.score import ScoreInputs, ScoreParams, score  # noqa: E402
from jupiterd.workers.evaluate.score_file import read_folders  # noqa: E402
from jupiterd.workers.evaluate.windows import BatchSize  # noqa: E402
from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer  # noqa: E402
from tests.support.workers.data_material import function, real, run_worker, synthetic, write  # noqa: E402

CONTEXT = 32
TRAINING = [function(number) for number in range(40)]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model"), seed=1)


@pytest.fixture(scope="module")
def other_dir(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("other"), seed=2)


def save_model(folder, seed):
    save_tokenizer(train_tokenizer(TRAINING, 300), folder)
    torch.manual_seed(seed)
    config = transformers.Qwen3Config(
        vocab_size=300,
        hidden_size=32,
        num_hidden_layers=2,
        intermediate_size=48,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        eos_token_id=0,
        initializer_range=0.3,
    )
    transformers.utils.logging.disable_progress_bar()
    transformers.Qwen3ForCausalLM(config).save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def model(model_dir):
    return LanguageModel(model_dir)


def plain_nats(model, ids):
    """Score one document the slow way: one window, all logits."""
    stream = torch.tensor([[0, *ids]])
    with torch.inference_mode():
        logits = model._model(input_ids=stream[:, :-1]).logits.double()
    chances = torch.log_softmax(logits, -1)
    return -chances[0].gather(1, stream[0, 1:, None]).sum().item()


def nats(model, texts, batch_windows=4):
    return model.nats(model.encode(texts), batch_windows, lambda _: None)


def test_a_text_that_fits_one_window_scores_as_the_plain_model_says(model):
    texts = ["def f(x):\n    return x\n", "x = 1\n", "for"]
    expected = [plain_nats(model, ids) for ids in model.encode(texts)]
    assert all(len(ids) <= CONTEXT for ids in model.encode(texts))
    assert nats(model, texts) == pytest.approx(expected, rel=1e-5)


def test_each_token_of_a_long_text_is_scored_once_from_its_window(model):
    (ids,) = model.encode([function(7, body_lines=4)])
    assert len(ids) > 2 * CONTEXT
    expected = plain_nats(model, ids[:CONTEXT])
    step = CONTEXT - CONTEXT // 4
    for start in range(step, len(ids) - CONTEXT // 4, step):
        stream = torch.tensor([[0, *ids][start : start + CONTEXT + 1]])
        with torch.inference_mode():
            chances = torch.log_softmax(model._model(input_ids=stream[:, :-1]).logits, -1)[0]
        picked = chances.gather(1, stream[0, 1:, None])[CONTEXT // 4 :]
        expected -= picked.sum().item()
    assert model.nats([ids], 3, lambda _: None)[0] == pytest.approx(expected, rel=1e-5)


def test_how_windows_are_batched_plays_no_part(model):
    texts = [function(n, body_lines=n % 5) for n in range(9)]
    assert nats(model, texts, 1) == pytest.approx(nats(model, texts, 16), rel=1e-5)


@pytest.mark.parametrize(("batch_windows", "at_a_time"), [(16, 8), (8, 8), (2, 2), (1, 1)])
def test_where_memory_ran_out_fewer_batches_are_computed_at_a_time(
    model, monkeypatch, batch_windows, at_a_time
):
    asked = []
    module = "jupiterd.workers.evaluate.language_model"
    monkeypatch.setattr(f"{module}.torch.get_num_threads", lambda: 8)
    monkeypatch.setattr(
        f"{module}.side_by_side",
        lambda work, batches, most: asked.append(most) or map(work, batches),
    )
    nats(model, TRAINING, batch_windows)
    assert asked == [at_a_time]


def test_another_architecture_is_scored_by_its_own_logits(model, monkeypatch):
    texts = [function(3)]
    expected = nats(model, texts)
    monkeypatch.setattr(
        "jupiterd.workers.evaluate.language_model.PLAIN_HEADS", PLAIN_HEADS - {"qwen3"}
    )
    assert nats(model, texts) == pytest.approx(expected, rel=1e-5)


def test_progress_is_told_in_documents(model):
    seen = []
    model.nats(model.encode([function(n) for n in range(5)]), 2, seen.append)
    assert seen[-1] == 5
    assert seen == sorted(seen)


def test_something_is_told_before_the_longest_text_is_scored(model, monkeypatch):
    order: list[int] = []

    def results(batches, score, _):
        order.extend(batch[0].stop - batch[0].start for batch in batches)
        return map(score, batches)

    monkeypatch.setattr(model, "results", results)
    monkeypatch.setattr(model, "batch_size", lambda _: BatchSize(1, 1))
    seen: list[int] = []
    model.nats([[1] * size for size in (9, 3, 12, 6, 20)], 8, seen.append)
    assert order == [6, 3, 20, 12, 9], "two short ones, then the long ones first"
    assert seen == [0, 0, 2, 4, 5], "counted by their tokens, so that the time left is right"


def test_the_tokenizer_loses_nothing(model):
    text = "caf\u00e9\u2028 \U0001f600\r\n\tx <|endoftext|>"
    (ids,) = model.encode([text])
    assert 0 not in ids
    assert model.is_lossless(text, ids)
    assert not model.is_lossless(text, ids[:-1])


def test_a_folder_that_holds_no_model_says_so(tmp_path):
    save_tokenizer(train_tokenizer(TRAINING, 300), tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CorruptArtifactError, match="no model can be loaded"):
        LanguageModel(tmp_path)


def held_out_inputs(tmp_path, model_dir, **others):
    kept = write(tmp_path / "k", [*(real(text) for text in TRAINING), synthetic("zz = 1\n" * 9)])
    holdout = write(tmp_path / "h", [real(function(n), f"m{n}") for n in range(100, 110)])
    return ScoreInputs(model_dir, others.pop("incumbent", None), [kept], [holdout], **others)


def test_all_are_scored_over_the_same_bytes(model_dir, other_dir, tmp_path):
    params = ScoreParams(0, 1, ScoringLimits(10, 4096, 5))
    alone = score(held_out_inputs(tmp_path / "a", model_dir), params).documents
    told: list[tuple[int, int, str]] = []
    paired = score(
        held_out_inputs(tmp_path / "b", model_dir, incumbent=model_dir, generator=other_dir),
        params,
        lambda done, total, unit: told.append((done, total, unit)),
    ).documents
    assert told[-1] == (20, 20, "texts"), "ten documents under two models: one stands for two"
    assert len(alone) == len(paired) == 10
    for row, pair in zip(alone, paired, strict=True):
        assert row.bytes == len(function(100).encode())
        assert row.incumbent_nats == row.generator_nats == row.byte_nats != row.candidate_nats
        assert pair.incumbent_nats == pair.candidate_nats
        assert pair.generator_nats not in (pair.candidate_nats, pair.byte_nats)
        assert row.byte_nats < row.unigram_nats  # more context helps
        # A random model is worse than guessing among its 300 tokens.
        assert row.candidate_nats > row.tokens * math.log(300) * 0.9


def test_a_model_that_was_scored_before_is_scored_no_more(model_dir, other_dir, tmp_path):
    store = ArtifactStore(tmp_path / "store")
    candidate, base = (
        store.path(store.ingest(shutil.copytree(folder, tmp_path / folder.name)))
        for folder in (model_dir, other_dir)
    )
    inputs = held_out_inputs(tmp_path, candidate, base=base)
    params, kept = (
        ScoreParams(0, 1, ScoringLimits(10, 4096, 5)),
        SavedNats(tmp_path / "kept", "torch"),
    )
    first = score(inputs, params, saved_nats=kept).documents
    (base / "model.safetensors").unlink()
    told: list[int] = []
    assert score(inputs, params, lambda done, *_: told.append(done), kept).documents == first
    assert told[-1] == 20, "both are told as done"
    assert score(inputs, params, saved_nats=kept).documents == first
    assert all(math.isfinite(row.base_nats) for row in first)
    elsewhere = score(inputs, params, saved_nats=SavedNats(tmp_path / "kept", "mlx")).documents
    assert {row.base_nats for row in elsewhere} == {math.inf}, "another engine has its own scores"


def test_gaps_are_filled_and_texts_written_where_that_is_asked(model_dir, other_dir, tmp_path):
    inputs = held_out_inputs(tmp_path, model_dir, incumbent=other_dir, generator=other_dir)
    params = ScoreParams(
        0, 1, ScoringLimits(10, 4096, 5), language="code:python", completions=4, seed=9
    )
    first, second = (score(inputs, params) for _ in range(2))
    assert first == second, "a seed decides what is written"
    assert len(first.cloze) == 10
    assert [row.incumbent_right for row in first.cloze] == [
        row.generator_right for row in first.cloze
    ]
    sanity = first.sanity
    assert sanity is not None
    assert sanity.loads
    assert sanity.completions == sanity.code == len(first.completions) == 4
    assert sanity.looping == sum(each.is_looping for each in first.completions)
    assert sanity.generator_parsed is not None


def test_each_text_that_is_written_is_told_as_a_step_of_its_own(model_dir, other_dir, tmp_path):
    inputs = held_out_inputs(tmp_path, model_dir, incumbent=other_dir, generator=other_dir)
    params = ScoreParams(
        0, 1, ScoringLimits(10, 4096, 5), language="code:python", completions=4, seed=9
    )
    told: list[tuple[int, int, str]] = []
    score(inputs, params, lambda *so_far: told.append(so_far))
    assert told[0] == (0, 28, "texts"), "ten documents under two models, and four texts of each"
    assert [done for done, _, _ in told if done > 20] == [*range(21, 29), 28]
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)


def test_a_candidate_that_does_not_load_is_scored_as_broken(model_dir, tmp_path):
    broken = tmp_path / "broken"
    save_tokenizer(train_tokenizer(TRAINING, 300), broken)
    (broken / "config.json").write_text("{}")
    inputs = held_out_inputs(tmp_path, broken, incumbent=model_dir, generator=model_dir)
    params = ScoreParams(0, 1, ScoringLimits(10, 4096, 5), language="code:python", completions=4)
    found = score(inputs, params)
    assert found.sanity is not None
    assert not found.sanity.loads
    assert "no model can be loaded" in found.sanity.trouble
    settings = GateSettings(0.05, 0.005, 0.02, 10, 5)
    verdict = decide(found.documents, settings, 1, Findings(found.sanity, found.cloze))
    assert verdict.decision is Decision.REJECT


def test_a_model_beside_itself_is_never_promoted(model_dir, tmp_path):
    """A planted A/A candidate: the same weights in another folder, scored by themselves."""
    twin = shutil.copytree(model_dir, tmp_path / "twin")
    inputs = held_out_inputs(tmp_path, twin, incumbent=model_dir, generator=model_dir)
    found = score(inputs, ScoreParams(0, 1, ScoringLimits(10, 4096, 5), language="code:python"))
    settings = GateSettings(0.05, 0.0, 0.02, 10, 5)
    verdict = decide(found.documents, settings, 1, Findings(None, found.cloze))
    assert verdict.decision is Decision.HOLD
    assert verdict.evidence is not None
    assert verdict.evidence.mean_improvement_bpb == 0.0


def test_the_worker_writes_its_piece_of_the_scores(model_dir, tmp_path):
    inputs = {
        "model": model_dir,
        "kept": write(tmp_path / "k", [real(text) for text in TRAINING]),
        "holdout.0": write(tmp_path / "h", [real(function(n), f"m{n}") for n in range(100, 110)]),
    }
    params = {
        "piece": 1,
        "pieces": 2,
        "min_document_bytes": 10,
        "max_document_bytes": 4096,
        "max_cluster_documents": 5,
        "completions": 2,
    }
    end = run_worker("evaluate", params, inputs, tmp_path / "out")
    assert isinstance(end, TaskFinished)
    assert end.counts["documents"] == end.counts["clusters"] == end.counts["scores"] == 5
    folder = tmp_path / "out" / end.outputs["scores"]
    assert len(read_folders([folder]).scores) == 5
    written = read_completions((folder / COMPLETIONS_FILE).read_text())
    held_out = [function(n) for n in range(100, 110)]
    assert len(written) == 2
    assert all(any(text.startswith(each.prompt) for text in held_out) for each in written)
