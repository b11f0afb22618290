"""What the commands of a conversation change, and what they say."""

import json

import pytest

from jupiterd.ctl.chat.chat_commands import ChatCommands
from jupiterd.ctl.chat.conversation import Conversation, Turn
from jupiterd.ctl.chat.endpoint.answer_chunks import ModelFacts
from jupiterd.ctl.chat.partner import Partner
from jupiterd.ctl.chat.sampling import Sampling
from jupiterd.ctl.chat.slash_commands import COMMANDS, slash_command
from jupiterd.ctl.chat.talk import Talk
from jupiterd.errors import ConflictError, NotFoundError, UsageError

TALK = Conversation("be brief").with_turn("one", "1").with_turn("two", "2\x1b[2J")


def talk_with(*, is_chat=True, conversation=TALK) -> Talk:
    facts = ModelFacts("python/2", is_chat, 2048, "nuc", "mlx")
    return Talk([Partner(facts, conversation)], last=conversation.turns[-1].asked)


def told(talk: Talk, line: str):
    def facts(name):
        if name == "gone":
            raise NotFoundError("there is no model gone")
        return ModelFacts(name, not name.endswith("base"))

    command = slash_command(line)
    assert command is not None
    return ChatCommands(talk, facts, lambda: ["python/2", "base", "mine"]).carry_out(command)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_does_something(name, tmp_path):
    examples = {"set": "top_p 0.5", "save": str(tmp_path / "talk.md"), "more": ""}
    outcome = told(talk_with(is_chat=name != "more"), f"/{name} {examples.get(name, '')}")
    assert outcome.lines or outcome.asks or outcome.leaves


def test_another_model_is_told_what_was_said_so_far():
    talk = talk_with()
    assert told(talk, "/model base").lines == ["base completes what you type"]
    assert talk.first.conversation == TALK
    with pytest.raises(NotFoundError):
        told(talk, "/model gone")
    assert talk.first.facts.name == "base"


def test_the_models_that_there_are_are_named():
    assert told(talk_with(), "/model").lines[1] == "others: base, mine"


def test_a_second_model_comes_and_goes():
    talk = talk_with()
    told(talk, "/beside base")
    assert [partner.facts.name for partner in talk.partners] == ["python/2", "python/2/base"]
    assert talk.partners[1].conversation == TALK
    assert told(talk, "/beside").lines == ["python/2 answers alone"]
    assert len(talk.partners) == 1
    assert "/beside MODEL" in told(talk, "/beside").lines[0]


def test_the_system_is_shown_changed_and_taken_away():
    talk = talk_with()
    assert told(talk, "/system").lines[0].startswith("be brief; ")
    told(talk, "/system speak like a sailor")
    assert talk.system == "speak like a sailor"
    told(talk, '/system ""')
    assert talk.system == ""
    told(talk, "/set system be kind")
    assert talk.system == "be kind"


def test_values_are_set_as_ollama_sets_them_too():
    talk = talk_with()
    told(talk, "/temperature 0.3")
    told(talk, "/set parameter num_predict 50")
    told(talk, "/set seed 3")
    assert talk.sampling == Sampling(temperature=0.3, max_tokens=50, seed=3)
    told(talk, "/temperature")
    assert talk.sampling.temperature is None
    told(talk, "/set verbose")
    assert talk.is_verbose
    with pytest.raises(UsageError, match="there is no colour"):
        told(talk, "/set colour red")
    assert "values: max_tokens 50, seed 3" in told(talk, "/show").lines


def test_undo_takes_back_the_last_question_and_again_asks_it_anew():
    talk = talk_with()
    talk.sampling = Sampling(seed=1)
    question = told(talk, "/again").asks
    assert (question.text, question.sampling.seed) == ("two", 2)
    assert talk.first.conversation.turns == TALK.turns[:1]
    assert told(talk, "/again").asks.text == "two"  # it had no answer; the turn before stays
    assert talk.first.conversation.turns == TALK.turns[:1]
    assert told(talk, "/undo").lines == ["forgotten: one; 0 questions left"]
    assert told(talk, "/undo").lines == ["nothing was asked yet"]
    assert told(talk, "/again").lines == ["nothing was asked yet"]


def test_undo_takes_it_from_both_models():
    talk = talk_with()
    told(talk, "/beside base")
    talk.partners[1].conversation = TALK.undone()  # the second didn't answer the last question
    told(talk, "/undo")
    assert {partner.conversation for partner in talk.partners} == {TALK.undone()}


def test_a_model_that_completes_goes_on_where_it_ended():
    talk = talk_with(is_chat=False, conversation=Conversation().with_turn("def f(", "n):"))
    assert told(talk, "/more").asks.text == "def f(n):"
    with pytest.raises(UsageError, match="chats: tell it to go on"):
        told(talk_with(), "/more")
    told(talk, "/beside base")
    with pytest.raises(UsageError, match="one model alone"):
        told(talk, "/more")


def test_clear_forgets_all_but_the_system():
    talk = talk_with()
    told(talk, "/clear")
    assert talk.first.conversation == Conversation("be brief")
    assert told(talk, "/again").lines == ["nothing was asked yet"]


def test_a_conversation_is_saved_for_people_and_for_programs(tmp_path):
    talk, file = talk_with(), tmp_path / "talk.md"
    commands = ChatCommands(talk, ModelFacts, list)
    assert commands.carry_out(slash_command(f"/save {file}")).lines == [
        f"{file}: 2 questions with answers"
    ]
    text = file.read_text()
    assert text.startswith("# A conversation with python/2\n\n**System**\n\nbe brief\n")
    assert "**You**\n\ntwo\n\n**python/2**\n\n2?[2J\n" in text
    commands.carry_out(slash_command(f"/save {file}"))  # its own file is written anew
    with pytest.raises(ConflictError, match="is there already"):
        told(talk, f"/save {file}")
    told(talk, f"/save {tmp_path / 'talk.json'}")
    [saved] = json.loads((tmp_path / "talk.json").read_text())["conversations"]
    assert saved["messages"][-1] == {"role": "assistant", "content": "2\x1b[2J"}
    with pytest.raises(UsageError, match="can't be written"):
        told(talk, f"/save {tmp_path / 'nowhere' / 'talk.md'}")
    with pytest.raises(UsageError, match="can't be written"):
        told(talk, f"/save {tmp_path / ('x' * 300)}")


def test_a_talk_remembers_what_was_asked_and_not_answered():
    talk = talk_with()
    talk.ask("three")
    assert told(talk, "/again").asks.text == "three"
    assert talk.first.conversation.turns[-1] == Turn("two", "2\x1b[2J")


@pytest.mark.parametrize("command", ["/model base", "/beside base"])
def test_another_model_is_told_also_what_was_too_much_for_the_first(command):
    talk = talk_with(conversation=TALK.forgetting())
    told(talk, command)
    assert talk.partners[-1].conversation == TALK
