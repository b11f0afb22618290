"""Asking a server that answers, and one that doesn't as it should."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.generation.generation_options import TRIED
from jupiterd.cycle.templates.prompt import Prompt, WrittenAnswer
from jupiterd.errors import (
    GeneratorRefusedError,
    GeneratorUnreachableError,
    WorkStoppedError,
)
from jupiterd.protocol.frames import TaskFinished
from jupiterd.store.sample_lookup import stored_drop_rows
from jupiterd.workers.generate import samples, server_client
from jupiterd.workers.generate.engine import Request, Sampling
from jupiterd.workers.generate.server_client import ServerPatience
from jupiterd.workers.generate.server_engine import ServerEngine
from jupiterd.workers.samples.sample_file import SampleWriter, read_samples
from tests.support.workers.answering_server import (
    END,
    Answering,
    Streamed,
    answer,
    answering,
    event,
    piece,
    trouble,
)
from tests.support.workers.data_material import real
from tests.support.workers.tiny_run import TaskAlone
from tests.unit.cycle.templates.test_answers import FAQ, PASSAGE

pytestmark = pytest.mark.net

HASTY = ServerPatience(
    tries=3, silent_s=5.0, first_pause_s=0.01, longest_pause_s=0.1, most_rejected=3
)
SAMPLING = Sampling(max_tokens=50, temperature=0.7, top_p=0.9)


def engine_at(served: Answering, **changes: Any) -> ServerEngine:
    fields: dict[str, Any] = {"patience": HASTY, **changes}
    return ServerEngine(Generator("t", url=served.url, model="tiny"), **fields)


def ask(engine: ServerEngine, count: int = 1) -> list[WrittenAnswer]:
    requests = [Request(Prompt(f"prompt {number}", ""), number) for number in range(count)]
    found = dict(engine.write(requests, SAMPLING))
    return [found[number] for number in range(count)]


def test_an_answer_comes_with_its_tokens_and_whether_it_is_whole():
    with answering(lambda _, n: answer(f"said {n}", "length" if n else "stop", 7)) as served:
        engine = engine_at(served, key="secret")
        assert ask(engine) == [WrittenAnswer("said 0", 7, is_whole=True)]
        assert ask(engine) == [WrittenAnswer("said 1", 7, is_whole=False)]
    assert served.asked[0] == {
        "model": "tiny", "messages": [{"role": "user", "content": "prompt 0"}], "max_tokens": 50,
        "temperature": 0.7, "top_p": 0.9, "seed": 0,
        "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    assert served.keys == ["Bearer secret"] * 2


def test_no_more_requests_are_under_way_than_allowed():
    together = threading.Barrier(3)

    def reply(_: dict[str, Any], __: int):
        together.wait(5.0)  # all three places are used: none waits for another to end
        return answer("so")

    with answering(reply) as served:
        assert len(ask(engine_at(served, concurrency=3), 9)) == 9
        assert served.most_at_once == 3


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_what_may_mend_is_asked_again(status: int):
    with answering(lambda _, n: trouble(status) if n < 2 else answer("so")) as served:
        assert ask(engine_at(served))[0].text == "so"
        assert len(served.asked) == 3


def test_a_server_is_left_alone_as_long_as_it_asks(monkeypatch: pytest.MonkeyPatch):
    with answering(
        lambda _, n: trouble(429, "slow down", Retry_After="0.05") if n == 0 else answer("so")
    ) as served:
        waited: list[float] = []

        async def sleep(pause_s: float) -> None:
            waited.append(pause_s)

        monkeypatch.setattr(server_client.asyncio, "sleep", sleep)
        assert ask(engine_at(served))[0].text == "so"
    assert len(waited) == 1
    assert 0.03 < waited[0] <= 0.05


def test_a_server_that_only_fails_is_given_up_in_one_line():
    with answering(lambda *_: trouble(500, "out of\nmemory" + "!" * 900)) as served:
        with pytest.raises(GeneratorUnreachableError) as refusal:
            ask(engine_at(served))
        assert len(served.asked) == 3
    assert refusal.value.message.startswith(f"{served.url}: HTTP 500, out of memory!!!")
    assert len(refusal.value.message) < 300


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>", b"[]", b'{"choices": []}', b'{"choices": [{"message": {"content": 5}}]}'],
)
def test_garbage_is_no_answer(content: bytes):
    with (
        answering(lambda *_: (200, content, {})) as served,
        pytest.raises(GeneratorUnreachableError, match="no chat completion"),
    ):
        ask(engine_at(served))


def test_an_endless_answer_is_not_read_to_its_end():
    with (
        answering(lambda *_: (200, b" " * (5 << 20), {})) as served,
        pytest.raises(GeneratorUnreachableError, match="larger than 4 MiB"),
    ):
        ask(engine_at(served))


def test_a_server_that_is_silent_is_told():
    late = threading.Event()
    quick = ServerPatience(tries=2, silent_s=0.1, first_pause_s=0.01)

    def reply(_: dict[str, Any], __: int):
        late.wait(5.0)
        return answer("too late")

    with answering(reply) as served:
        with pytest.raises(GeneratorUnreachableError, match=r"no sign of life for 0\.1 s"):
            ask(engine_at(served, patience=quick))
        late.set()


def test_a_server_that_is_not_there_is_told():
    with answering(lambda *_: answer("so")) as served:
        pass
    with pytest.raises(GeneratorUnreachableError, match="it can't be reached"):
        ask(engine_at(served))


@pytest.mark.parametrize(("status", "message"), [(401, "bad key"), (404, "no such model")])
def test_a_refusal_is_final(status: int, message: str):
    with answering(lambda *_: trouble(status, message)) as served:
        with pytest.raises(GeneratorRefusedError, match=f"HTTP {status}, {message}"):
            ask(engine_at(served))
        assert len(served.asked) == 1


def test_the_key_goes_nowhere_else():
    with (
        answering(lambda *_: trouble(302, Location="http://198.51.100.1/")) as served,
        pytest.raises(GeneratorRefusedError, match="sends us elsewhere"),
    ):
        ask(engine_at(served, key="secret"))


def test_parameters_that_a_server_does_not_know_are_left_out():
    def reply(body: dict[str, Any], _: int):
        if "max_tokens" in body:
            return trouble(400, "use 'max_completion_tokens' instead")
        if "seed" in body:
            return trouble(422, "unknown field seed")
        return answer("so")

    with answering(reply) as served:
        assert ask(engine_at(served))[0].text == "so"
        assert served.asked[-1]["max_completion_tokens"] == 50


def test_one_request_that_is_wrong_has_no_answer_and_the_others_do():
    def reply(body: dict[str, Any], _: int):
        is_odd = "prompt 1" in body["messages"][0]["content"]
        return trouble(400, "too long") if is_odd else answer("so")

    with answering(reply) as served:
        assert [each.text for each in ask(engine_at(served), 3)] == ["so", "", "so"]


def test_a_server_that_calls_all_requests_wrong_is_given_up():
    with (
        answering(lambda *_: trouble(400, "too long")) as served,
        pytest.raises(GeneratorRefusedError, match="too long"),
    ):
        ask(engine_at(served, concurrency=1), 5)


def test_a_stop_does_not_wait_for_the_server():
    late = threading.Event()

    def reply(_: dict[str, Any], __: int):
        late.wait(5.0)
        return trouble(500)

    with answering(reply) as served:
        stopping = engine_at(served, is_stopped=lambda: bool(served.asked) and not late.set())
        with pytest.raises(WorkStoppedError):
            ask(stopping, 20)


def test_an_answer_that_comes_in_pieces_is_put_together_and_its_tokens_are_told():
    counts: list[int] = []
    events = [piece("So "), b": still here\n\n", piece("it "), piece("is.", "stop")]
    usage = event(choices=[], usage={"completion_tokens": 9})
    with answering(lambda *_: Streamed([*events, usage, END])) as served:
        engine = engine_at(served)
        found = dict(engine.write([Request(Prompt("p", ""), 1)], SAMPLING, counts.append))
    assert found[0] == WrittenAnswer("So it is.", 9, is_whole=True)
    assert sum(counts) == 3


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([piece("So ")], "its answer broke off"),
        ([piece("So "), event(error={"message": "out of memory"})], "out of memory"),
        ([piece("So "), b"data: <html>\n\n"], "no chat completion"),
    ],
)
def test_a_stream_that_breaks_off_is_no_answer(events: list[bytes], message: str):
    with (
        answering(lambda *_: Streamed(events)) as served,
        pytest.raises(GeneratorUnreachableError, match=message),
    ):
        ask(engine_at(served))


def test_a_stream_that_was_cut_at_its_greatest_length_says_so():
    with answering(lambda *_: Streamed([piece("So", "length"), END])) as served:
        assert ask(engine_at(served)) == [WrittenAnswer("So", 0, is_whole=False)]


def test_a_server_that_answers_one_after_another_is_waited_for_however_long_its_queue_is():
    """Each answer takes longer than the server may be silent, and the last waits for all others."""
    one_at_a_time, tick = threading.Lock(), threading.Event()

    def events():
        with one_at_a_time:
            for _ in range(4):
                tick.wait(0.1)
                yield piece("word ")
            yield piece("end", "stop") + END

    with answering(lambda *_: Streamed(events())) as served:
        engine = engine_at(served, patience=replace(HASTY, tries=1, silent_s=0.35))
        assert [each.text for each in ask(engine, 6)] == ["word word word word end"] * 6
        assert len(served.asked) == 6, "nothing was asked twice"


def test_a_server_that_answers_many_at_once_is_asked_sixteen_things_at_once():
    tick = threading.Event()
    groups = [threading.Barrier(size) for size in (4, 4, 8, 8, 16, 16)]
    of_group = [group for group in groups for _ in range(group.parties)]

    def reply(_: dict[str, Any], number: int):
        of_group[number].wait(10.0)  # as many as that are under way
        tick.wait(0.3)
        return answer("so", tokens=50)

    with answering(reply) as served:
        assert len(ask(engine_at(served), len(of_group))) == 56
        assert served.most_at_once == 16


def test_a_request_that_always_fails_is_given_up_where_others_are_answered():
    def reply(body: dict[str, Any], _: int):
        is_odd = "prompt 1" in body["messages"][0]["content"]
        return trouble(500, "it broke") if is_odd else answer("so")

    with answering(reply) as served:
        assert [each.text for each in ask(engine_at(served), 4)] == ["so", "", "so", "so"]


def test_what_came_with_a_failure_is_handed_on_before_it():
    """Whatever is answered before the server goes away must never be asked for again."""
    with answering(lambda _, n: answer("so") if n < 5 else trouble(404, "gone")) as served:
        requests = [Request(Prompt(f"prompt {number}", ""), number) for number in range(9)]
        came = engine_at(served, concurrency=1).write(requests, SAMPLING)
        assert [next(came)[1].text for _ in range(5)] == ["so"] * 5
        with pytest.raises(GeneratorRefusedError):
            next(came)


def generate(served: Answering, folder: Path, wanted: int = 6) -> tuple[TaskFinished, list[Any]]:
    documents = folder / "documents"
    with SampleWriter(documents) as writer:
        for number in range(wanted):
            writer.add(real(f"Loaf number {number}. {PASSAGE}"))
    params: dict[str, Any] = {
        "template": {"kind": "faq", "samples": wanted}, "seed": 3, "max_tokens": 400,
        "language": "en",
        "temperature": 0.7, "top_p": 0.9, "fetched_at": "", "generator": f"{served.url}#tiny",
        "server": Generator("t", url=served.url, model="tiny").to_plain(),
    }  # fmt: skip
    task = TaskAlone("generate", params, {"train.0": str(documents)}, folder / "out")
    finished = samples.run(task)
    return finished, list(read_samples(folder / "out" / "samples"))


def test_what_a_server_says_becomes_samples_or_is_refused_with_its_reason(tmp_path: Path):
    bad = [answer(""), answer("Why?\nWhy?\n" * 40), answer(FAQ, "length"), answer(PASSAGE * 2)]

    def reply(_: dict[str, Any], number: int):
        return bad[number] if number < len(bad) else answer(f"What is loaf {number}?\n{FAQ}")

    with answering(reply) as served:
        finished, made = generate(served, tmp_path)
        counts = finished.counts
        assert (counts["prompts"], counts["samples"]) == (6, 2)
        refused = {name: times for name, times in counts.items() if name.startswith("refused.")}
        assert refused == {
            "refused.empty": 1, "refused.repeated": 2, "refused.truncated": 1,
        }  # fmt: skip
        assert {each.generator for each in made} == {f"{served.url}#tiny"}
        shown = [*stored_drop_rows(tmp_path / "out" / "refused")]
        assert sorted(row["reason"] for _, row in shown) == [
            "empty", "repeated", "repeated", "truncated",
        ]  # fmt: skip
        sample, row = next(each for each in shown if each[1].get("measure") == "repeated_lines")
        assert row["value"] > row["limit"] == 0.3
        assert sample.text == "Why?\nWhy?\n" * 40
        assert (sample.template, sample.source_uri) == ("faq", made[0].source_uri)
        assert all(each.collector.startswith("faq@") and each.template == "faq" for each in made)
        assert all({"passage", "passage_chars"} <= set(each.sampler) for each in made)
        parents = {each.parents for each in made}
        known = {each.id for each in read_samples(tmp_path / "documents")}
        assert all(len(each) == 1 and each[0] in known for each in parents)


def test_what_was_answered_before_a_failure_counts_and_is_not_asked_for_again(tmp_path: Path):
    with answering(lambda _, n: answer(FAQ) if n < 4 else trouble(404, "gone")) as served:
        finished, made = generate(served, tmp_path)
        had = int(finished.counts["prompts"])
        assert 1 <= had <= 4
        assert len(made) == 1, "all of them say the same"
        message = f"{served.url}: HTTP 404, gone; {had} of 6 prompts were answered"
        assert finished.summary["without"] == message
        served.reply = lambda *_: answer(FAQ)
        before = len(served.asked)
        again, _ = generate(served, tmp_path)
        assert again.counts["kept"] == had
        assert len(served.asked) - before == 6 - had
        assert "without" not in again.summary


def test_a_generator_that_answers_nothing_is_told(tmp_path: Path):
    with (
        answering(lambda *_: trouble(404, "no such model")) as served,
        pytest.raises(GeneratorRefusedError, match="no such model"),
    ):
        generate(served, tmp_path)


def test_what_a_generator_cannot_do_is_not_asked_to_the_end(tmp_path: Path):
    with answering(lambda *_: answer("No.")) as served:
        finished, made = generate(served, tmp_path, 2 * TRIED)
        assert TRIED <= len(served.asked) < 2 * TRIED
    assert (finished.counts["prompts"], made) == (TRIED, [])
    assert finished.summary["given_up"] == (
        f"faq: none of {TRIED} answers could be used, so no more were asked"
    )


def test_a_single_answer_that_can_be_used_has_it_asked_to_the_end(tmp_path: Path):
    with answering(lambda _, n: answer("No." if n else FAQ)) as served:
        finished, made = generate(served, tmp_path, 2 * TRIED)
    assert (finished.counts["prompts"], len(made)) == (2 * TRIED, 1)
    assert "given_up" not in finished.summary
