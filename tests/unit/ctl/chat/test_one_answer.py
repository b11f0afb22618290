"""`jupiterctl model chat MODEL PROMPT`: one answer, for people, files and programs."""

import io
import json
import sys

import pytest

from tests.support.ctl.chat_server import HOLD, Refusal, Served, chat_server

BASE = {"chat": False, "context_tokens": 64, "node": "nuc", "engine": "mlx"}


@pytest.fixture(autouse=True)
def nothing_typed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))


@pytest.fixture
def server(state_dir):
    with chat_server(state_dir, base=Served(lambda _: ["return", " n"], BASE)) as server:
        yield server


def test_a_prompt_is_answered_without_decoration(ctl, server):
    ran = ctl("model", "chat", "promoted", "hi")
    assert (ran.exit_code, ran.out, ran.err) == (0, "hello there\n", "")
    [(path, body)] = server.asked
    assert path == "/v1/chat/completions"
    assert body == {
        "model": "promoted",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_one_argument_with_a_space_is_a_prompt_for_the_promoted_model(ctl, server):
    assert ctl("model", "chat", "how are you").out == "hello there\n"
    assert ctl("model", "chat", "base", "def", "f(n):").out == "return n\n"
    assert [body["model"] for body in server.bodies()] == ["promoted", "base"]
    assert server.bodies()[1]["prompt"] == "def f(n):"


def test_options_and_the_system_are_sent(ctl, server):
    said = ("--system", "be brief", "--temperature", "0.5", "--top-p", "0.9", "--max-tokens", "9")
    assert ctl("model", "chat", "how are you", *said, "--seed", "4").exit_code == 0
    [body] = server.bodies()
    assert body["messages"][0] == {"role": "system", "content": "be brief"}
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.5, 0.9, 9)
    assert body["seed"] == 4


@pytest.mark.parametrize("option", [("--temperature", "3"), ("--top-p", "0"), ("--seed", "-1")])
def test_absurd_options_are_refused_in_one_line(ctl, server, option):
    ran = ctl("model", "chat", "a prompt", *option)
    assert ran.exit_code == 2
    assert server.asked == []


def test_what_is_piped_is_the_prompt_or_stands_above_it(ctl, server, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("from a pipe\n"))
    assert ctl("model", "chat").out == "hello there\n"
    assert server.bodies()[0]["messages"][-1]["content"] == "from a pipe"


def test_a_file_stands_above_the_prompt(ctl, server, monkeypatch, tmp_path):
    (tmp_path / "diff").write_text("+ line\n")
    with (tmp_path / "diff").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert ctl("model", "chat", "what is this?").exit_code == 0
    assert server.bodies()[0]["messages"][-1]["content"] == "+ line\n\nwhat is this?"


def test_nothing_to_ask_is_said(ctl, server):
    ran = ctl("model", "chat")
    assert ran.exit_code == 2
    assert "nothing was asked" in ran.err
    assert server.asked == []


def test_one_word_alone_may_have_been_the_prompt(ctl, server):
    ran = ctl("model", "chat", "hello")
    assert ran.exit_code == 2
    assert "nothing was asked of a model called hello" in ran.err
    assert 'jupiterctl model chat promoted "hello"' in ran.err


def test_json_has_the_figures(ctl, server):
    told = json.loads(ctl("model", "chat", "base", "def f(n):", "-o", "json").out)
    [answer] = told["answers"]
    assert (told["prompt"], answer["text"], answer["chat"]) == ("def f(n):", "return n", False)
    assert (answer["node"], answer["engine"]) == ("nuc", "mlx")
    assert (answer["prompt_tokens"], answer["completion_tokens"]) == (7, 2)
    assert answer["first_token_s"] > 0
    assert answer["finish_reason"] == "stop"


def test_verbose_tells_them_beside_the_answer(ctl, server):
    ran = ctl("model", "chat", "base", "def f(n):", "--verbose")
    assert ran.out == "return n\n"
    assert "2 tokens" in ran.err
    assert "prompt 7 tokens, context 64, on nuc (mlx)" in ran.err


def test_two_models_answer_one_below_the_other(ctl, server):
    ran = ctl("model", "chat", "how are you", "--beside", "base")
    assert ran.out == "promoted:\nhello there\n\nbase:\nreturn n\n"


def test_a_model_without_template_completes_if_nobody_said_so_before(ctl, server):
    refusal = Refusal(400, {"message": "the tokenizer has no chat template", "code": "x"})
    says = lambda body: refusal if "messages" in body else ["ion"]  # noqa: E731
    server.models["run"] = Served(says, jupiter=None)
    assert ctl("model", "chat", "run", "complet").out == "ion\n"
    assert [path for path, _ in server.asked] == ["/v1/chat/completions", "/v1/completions"]


def test_a_prompt_that_is_too_long_is_told_with_both_numbers(ctl, server):
    said = "the prompt has 90 tokens, and the context 64"
    server.models["base"] = Served(
        lambda _: Refusal(400, {"message": said, "code": "context_length_exceeded"}), BASE
    )
    ran = ctl("model", "chat", "base", "long text")
    assert (ran.exit_code, ran.out) == (2, "")
    assert ran.err.startswith(f"jupiterctl: error: {said}\n\nhint: ")


def test_a_model_that_isnt_there_is_told_with_the_servers_hint(ctl, server):
    ran = ctl("model", "chat", "python/9", "a prompt")
    assert ran.exit_code == 6
    assert "there is no model python/9" in ran.err
    assert "hint: jupiterctl model list" in ran.err


def test_a_folder_is_named_by_its_whole_path(ctl, server, tmp_path, monkeypatch):
    folder = tmp_path / "my model"
    folder.mkdir()
    server.models[str(folder)] = Served()
    monkeypatch.chdir(tmp_path)
    assert ctl("model", "chat", "./my model", "hi there").out == "hello there\n"
    ran = ctl("model", "chat", "./yours", "hi there")
    assert (ran.exit_code, "there is no folder" in ran.err) == (6, True)


def test_an_error_in_the_midst_leaves_what_was_written(ctl, server):
    broken = b'data: {"error": {"message": "the engine died", "code": "engine_lost"}}\n\n'
    server.models["base"] = Served(lambda _: ["half", broken], BASE)
    ran = ctl("model", "chat", "base", "def f(n):")
    assert (ran.exit_code, ran.out) == (1, "half\n")
    assert "error: the engine died" in ran.err
    told = ctl("model", "chat", "promoted", "x y", "--beside", "base", "-o", "json")
    assert told.exit_code == 1
    answers = json.loads(told.out)["answers"]
    assert answers[0]["error"] is None
    assert answers[1]["error"]["code"] == "engine-lost"


def test_nothing_that_a_model_writes_steers_a_terminal(ctl, server):
    server.models["base"] = Served(lambda _: ["\x1b]52;c;x\x07", "a\x9b2Jb\r\nc"], BASE)
    ran = ctl("model", "chat", "base", "def f(n):")
    assert ran.out == "?]52;c;x?a?2Jb\nc\n"
    told = ctl("model", "chat", "base", "def f(n):", "-o", "json").out
    assert not any(ord(char) < 10 or 127 <= ord(char) < 160 for char in told)
    assert json.loads(told)["answers"][0]["text"] == "\x1b]52;c;x\x07a\x9b2Jb\r\nc"


def test_a_daemon_without_an_endpoint_is_told_from_none(ctl, daemon):
    ran = ctl("model", "chat", "how are you")
    assert ran.exit_code == 3
    assert "not for models" in ran.err


def test_no_daemon_is_told(ctl):
    ran = ctl("model", "chat", "how are you")
    assert ran.exit_code == 3
    assert "no jupiterd answers on" in ran.err


def test_both_are_asked_at_once(ctl, server):
    """The first waits until the second has been asked."""

    def says(_):
        yield HOLD
        yield "first"

    def lets_go(_):
        server.go.set()
        return ["second"]

    server.models |= {"one": Served(says), "two": Served(lets_go)}
    ran = ctl("model", "chat", "one", "a prompt", "--beside", "two")
    assert ran.out == "one:\nfirst\n\ntwo:\nsecond\n"


def test_bytes_that_are_no_text_do_no_harm(ctl, server, monkeypatch):
    odd = io.TextIOWrapper(io.BytesIO(b"caf\xe9\n"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", odd)
    assert ctl("model", "chat").out == "hello there\n"
    assert ctl("model", "chat", "promoted", "caf\udce9").exit_code == 0
    sent = [body["messages"][-1]["content"] for body in server.bodies()]
    assert sent == ["caf\ufffd", "caf\ufffd"]
    assert ctl("model", "chat", "promoted", "hi", "--system", "caf\udce9").exit_code == 0
    assert server.bodies()[-1]["messages"][0]["content"] == "caf\ufffd"
    for names in (["caf\udce9"], ["promoted", "hi", "--beside", "caf\udce9"]):
        ran = ctl("model", "chat", *names, "hi")
        assert (ran.exit_code, "there is no model caf\\xe9" in ran.err) == (6, True)


def test_an_error_is_told_by_its_code_with_its_own_hint(ctl, server):
    told = {"message": "90 tokens, and 64", "code": "prompt_too_long", "hint": "shorten it"}
    server.models["base"] = Served(lambda _: Refusal(400, told), {"chat": True})
    ran = ctl("model", "chat", "base", "x y")
    assert (ran.exit_code, ran.err) == (
        2,
        "jupiterctl: error: 90 tokens, and 64\n\nhint: shorten it\n",
    )


@pytest.mark.parametrize("name", ["a" * 300, f"/{'a' * 300}"])
def test_a_name_longer_than_any_file_has_is_the_name_of_no_model(ctl, server, name):
    ran = ctl("model", "chat", name, "hi")
    assert (ran.exit_code, "there is no" in ran.err) == (6, True)


def test_a_number_that_is_none_is_refused(ctl, server):
    for option in ("--temperature", "--top-p"):
        ran = ctl("model", "chat", "promoted", "hi", option, "nan")
        assert (ran.exit_code, "nan is no number" in ran.err) == (2, True)
    assert server.asked == []


def test_a_comment_that_says_nothing_only_keeps_the_connection(ctl, server):
    server.models["base"] = Served(lambda _: [b":\n\n", "return", b":\n\n", " n"], BASE)
    ran = ctl("model", "chat", "base", "def f(n):")
    assert (ran.exit_code, ran.out) == (0, "return n\n")


def test_a_model_that_only_thought_is_told_with_its_figures(ctl, server):
    thought = b'data: {"choices": [{"delta": {"reasoning_content": "well"}}]}\n\n'
    cut = b'data: {"choices": [{"delta": {}, "finish_reason": "length"}]}\n\n'
    server.models["muses"] = Served(lambda _: [thought, thought, cut, b"data: [DONE]\n\n"])
    ran = ctl("model", "chat", "muses", "why?", "--verbose")
    assert (ran.exit_code, ran.out) == (0, "")
    assert "2 tokens" in ran.err
    assert "cut there: --max-tokens NUMBER lets it write more" in ran.err


BUSY = {"message": "the promoted model is still being loaded", "code": "busy", "hint": "wait"}


def test_a_model_that_is_being_loaded_is_asked_again_and_that_is_said_once(ctl, server):
    said = iter([Refusal(503, BUSY, "0.1"), Refusal(503, BUSY, "1"), Refusal(503, BUSY, "1")])
    server.models["promoted"] = Served(lambda _: next(said, ["ready"]))
    ran = ctl("model", "chat", "promoted", "x y")
    assert (ran.exit_code, ran.out) == (5, ""), "a Retry-After that is no whole number is none"
    ran = ctl("model", "chat", "promoted", "x y")
    assert (ran.exit_code, ran.out) == (0, "ready\n")
    assert ran.err == (
        "jupiterctl: promoted: the promoted model is still being loaded; it is asked again, "
        "for 3 min 00 s at the most; Ctrl-C ends that\n"
    )
    assert len(server.asked) == 4


def test_nobody_waits_for_longer_than_was_said(ctl, server, monkeypatch):
    monkeypatch.setattr("jupiterd.ctl.chat.busy_retry.PATIENCE_S", 0.5)
    server.models["promoted"] = Served(lambda _: Refusal(503, BUSY, "1"))
    ran = ctl("model", "chat", "promoted", "x y")
    assert ran.exit_code == 5
    assert "still being loaded" in ran.err
    assert len(server.asked) == 1


@pytest.mark.parametrize("seed", ["-1", str(2**80)])
def test_a_seed_that_no_engine_takes_is_refused_where_it_is_typed(ctl, server, seed):
    ran = ctl("model", "chat", "promoted", "x y", "--seed", seed)
    assert (ran.exit_code, server.asked) == (2, [])
    assert f"{seed} is not in the range 0<=x<=9223372036854775807" in ran.err
