import json
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest

from jupiterd.cycle.data.document_index import DocumentIndex
from jupiterd.cycle.data.lineage import text_hash
from jupiterd.cycle.templates.pairs import origin
from jupiterd.errors import EmptySourceError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.pack.contents import CONTENTS_FILE
from jupiterd.workers.data.pack.pack_shards import PackParams, pack
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.tokens.tokenizer import END_OF_TEXT, load_tokenizer, tokenizer_hash
from tests.support.workers.data_material import (
    files_of,
    function,
    real,
    run_worker,
    synthetic,
    write,
)

PARAMS = PackParams(vocab_size=400, seq_len=16, synthetic_share=0.3, seed=1)
SEED = 4242
TEXTS = [function(number) for number in range(40)]


@pytest.fixture
def kept(tmp_path):
    return write(tmp_path / "kept", [real(text) for text in TEXTS])


def stream_of(folder):
    shards = ShardSet(folder / "shards")
    parts = shards.sequences_at(np.arange(shards.sequences))
    return np.concatenate([parts[0, :1], parts[:, 1:].ravel()])


def documents_of(folder):
    """Return the texts that the stream spells, the last of them perhaps cut."""
    tokenizer = load_tokenizer(folder / "tokenizer")
    text = tokenizer.decode(stream_of(folder).tolist(), skip_special_tokens=False)
    return text.split(END_OF_TEXT)


def test_the_stream_spells_every_document_once_each_before_an_end_mark(tmp_path, kept):
    counts, reason = pack([kept], None, tmp_path, PARAMS)
    *whole, last = documents_of(tmp_path)
    assert len(whole) >= 39
    assert len(set(whole)) == len(whole)
    assert set(whole) <= set(TEXTS)
    assert any(text.startswith(last) for text in TEXTS)
    assert whole != TEXTS[: len(whole)]  # shuffled
    assert counts["documents"] == 40
    assert counts["bytes"] == sum(map(len, TEXTS))
    assert counts["sequences"] == (counts["tokens"] - 1) // 16
    assert counts["tokens_per_byte"] == pytest.approx(counts["tokens"] / counts["bytes"])
    assert reason.startswith("real text alone")


def test_the_index_says_what_the_shards_hold(tmp_path, kept):
    counts, _ = pack([kept], None, tmp_path, PARAMS)
    index = json.loads((tmp_path / "shards" / "index.json").read_text())
    assert index["tokens"] == counts["tokens"] == sum(f["tokens"] for f in index["files"])
    assert index["tokenizer_hash"] == tokenizer_hash(tmp_path / "tokenizer")
    assert index["vocab_size"] == load_tokenizer(tmp_path / "tokenizer").get_vocab_size()
    assert index["seq_len"] == 16


def test_packing_again_gives_the_same_bytes_and_another_seed_another_order(tmp_path, kept):
    for name in "ab":
        pack([kept], None, tmp_path / name, PARAMS)
    pack([kept], None, tmp_path / "c", PackParams(400, 16, 0.3, seed=2))
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert documents_of(tmp_path / "c")[:20] != documents_of(tmp_path / "a")[:20]


def test_the_order_and_the_folders_of_the_samples_play_no_part(tmp_path, kept):
    choice = random.Random(SEED)
    pack([kept], None, tmp_path / "plain", PARAMS)
    for number in range(4):
        shuffled = choice.sample(TEXTS, len(TEXTS))
        cut = choice.randrange(len(TEXTS))
        folders = [
            write(tmp_path / f"{number}{name}", [real(text) for text in texts])
            for name, texts in (("a", shuffled[:cut]), ("b", shuffled[cut:]))
        ]
        pack(folders, None, tmp_path / f"out{number}", PARAMS)
        assert files_of(tmp_path / f"out{number}") == files_of(tmp_path / "plain"), SEED


def test_each_token_leads_to_the_text_that_it_spells(tmp_path, kept):
    counts, _ = pack([kept], None, tmp_path, PARAMS)
    index = DocumentIndex(memoryview((tmp_path / "shards" / "documents.index").read_bytes()))
    assert (index.documents, index.tokens) == (40, counts["tokens"])
    stream = np.fromfile(tmp_path / "shards" / "00000.bin", dtype="<u2").tolist()
    tokenizer = load_tokenizer(tmp_path / "tokenizer")
    texts = {text_hash(text): text for text in TEXTS}
    for number in range(40):
        document = index.document(number)
        spelt = tokenizer.decode(stream[document.first : document.end - 1])
        assert spelt == texts[document.sample_id]
        assert stream[document.end - 1] == 0  # the end mark


def test_the_tokenizer_learns_from_real_text_alone(tmp_path, kept):
    strange = synthetic("qqqq_zzzz = 'wwww_kkkk'  # " + "qqqq_zzzz " * 50)
    mixed = write(tmp_path / "mixed", [*(real(text) for text in TEXTS), strange])
    counts, _ = pack([mixed], None, tmp_path / "a", PARAMS)
    pack([kept], None, tmp_path / "b", PARAMS)
    assert counts["synthetic_documents"] == 1
    assert files_of(tmp_path / "a" / "tokenizer") == files_of(tmp_path / "b" / "tokenizer")


def test_a_given_tokenizer_is_used_and_handed_on_unchanged(tmp_path, kept):
    pack([kept], None, tmp_path / "a", PARAMS)
    other = write(tmp_path / "other", [real(function(n)) for n in range(90, 120)])
    pack([other], tmp_path / "a" / "tokenizer", tmp_path / "b", PARAMS)
    assert files_of(tmp_path / "a" / "tokenizer") == files_of(tmp_path / "b" / "tokenizer")
    assert set(documents_of(tmp_path / "b")[:-1]) <= {function(n) for n in range(90, 120)}


def test_of_a_model_to_begin_with_the_tokenizer_alone_is_handed_on(tmp_path, kept):
    pack([kept], None, tmp_path / "a", PARAMS)
    model = tmp_path / "model"
    shutil.copytree(tmp_path / "a" / "tokenizer", model)
    (model / "model.safetensors").write_bytes(b"weights")
    pack([kept], model, tmp_path / "b", PARAMS)
    assert files_of(tmp_path / "a" / "tokenizer") == files_of(tmp_path / "b" / "tokenizer")


def test_synthetic_text_stays_under_its_share_and_real_text_is_all_there(tmp_path):
    made = [synthetic(function(number), f"p{number}") for number in range(100, 200)]
    folder = write(tmp_path / "mixed", [*(real(text) for text in TEXTS), *made])
    counts, reason = pack([folder], None, tmp_path, PARAMS)
    real_bytes = sum(map(len, TEXTS))
    assert 0.25 < 1 - real_bytes / counts["bytes"] <= 0.3
    assert counts["documents"] - counts["synthetic_documents"] == 40
    assert reason.endswith("more would exceed the cap")


def test_an_end_mark_spelt_out_in_a_text_is_text(tmp_path):
    text = f'END = "{END_OF_TEXT}"\n' + function(1, 30)
    pack([write(tmp_path / "k", [real(text)])], None, tmp_path, PARAMS)
    assert 0 not in stream_of(tmp_path).tolist()
    assert END_OF_TEXT in load_tokenizer(tmp_path / "tokenizer").decode(
        stream_of(tmp_path).tolist(), skip_special_tokens=False
    )


def test_text_too_short_for_one_sequence_says_so(tmp_path):
    folder = write(tmp_path / "k", [real("x = 1")])
    with pytest.raises(EmptySourceError, match="too few for a sequence"):
        pack([folder], None, tmp_path, PARAMS)


def test_the_worker_packs_and_transformers_loads_the_tokenizer(tmp_path, kept):
    params = {"vocab_size": 400, "seq_len": 16, "synthetic_share": 0.3, "seed": 1}
    end = run_worker("pack", params, {"kept": kept}, tmp_path / "out")
    assert isinstance(end, TaskFinished)
    assert end.outputs == {"tokenizer": "tokenizer", "shards": "shards"}
    assert end.summary["mix_reason"] == "real text alone: there are no synthetic samples"
    transformers = pytest.importorskip("transformers")
    loaded = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "out" / "tokenizer"))
    ours = load_tokenizer(tmp_path / "out" / "tokenizer")
    assert loaded(TEXTS[0])["input_ids"] == ours.encode(TEXTS[0]).ids
    assert loaded.decode(loaded(TEXTS[0])["input_ids"]) == TEXTS[0]
    assert loaded.eos_token_id == 0


def test_a_purged_source_is_left_out_with_all_that_was_made_from_it(tmp_path):
    docs = [real(function(number), source="docs") for number in range(200, 210)]
    child = replace(synthetic(function(300)), parents=(docs[0].id,))
    grandchild = replace(synthetic(function(301)), parents=(child.id,), depth=2)
    others = [*(real(text, source="code") for text in TEXTS), synthetic(function(302))]
    everything = write(tmp_path / "all", [grandchild, *docs, *others, child])
    rest = write(tmp_path / "rest", others)
    purging = replace(PARAMS, purged=("docs", "never-heard-of"))
    counts, _ = pack([everything], None, tmp_path / "a", purging)
    pack([rest], None, tmp_path / "b", PARAMS)
    assert counts["in_shards:docs"] == counts["in_shards:never-heard-of"] == 0
    assert (counts["left_out:docs"], counts["left_out:never-heard-of"]) == (12, 0)
    contents = json.loads((tmp_path / "a" / "shards" / CONTENTS_FILE).read_text())
    assert contents["purged"]["docs"] == {"in_shards": 0, "left_out": 12}
    assert contents["source"] == {"code": 40, "": 1}
    assert contents["kind"] == {"real": 40, "synthetic": 1}
    assert sum(contents["generator"].values()) == sum(contents["template"].values()) == 1
    assert contents["synthetic_bytes"] == len(function(302).encode())
    for name in ("00000.bin", "documents.index"):
        paths = [tmp_path / side / "shards" / name for side in "ab"]
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_some_of_what_was_made_of_a_passage_stands_behind_it(tmp_path):
    documents = [
        real(f"{number} {'Bees dance to tell where flowers are. ' * 9}".strip())
        for number in range(30)
    ]
    answers = [
        replace(
            synthetic(f"Why {number}? They tell where flowers are, {number}.", parent.id),
            template="faq",
            sampler=origin(0, 1_000),
        )
        for number, parent in enumerate(documents[:9])
    ]
    counts, _ = pack([write(tmp_path / "kept", [*documents, *answers])], None, tmp_path, PARAMS)
    whole = documents_of(tmp_path)[:-1]
    paired = [text for text in whole if text.startswith("<doc>\n")]
    assert 0 < counts["paired_documents"] < len(answers)
    assert abs(len(paired) - counts["paired_documents"]) <= 1  # the last may be cut
    for text in paired:
        parent, _, answer = text.removeprefix("<doc>\n").partition("\n</doc>\n<faq>\n")
        assert parent in {each.text for each in documents}
        assert answer.removesuffix("\n</faq>") in {each.text for each in answers}
