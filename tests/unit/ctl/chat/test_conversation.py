"""What a model is sent of a conversation."""

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.ctl.chat.conversation import (
    Conversation,
    Measure,
    answer_room,
    fitted,
    length,
)

TALK = Conversation("be brief").with_turn("one", "1").with_turn("two", "2")


def contents(conversation: Conversation, asked: str) -> list[str]:
    return [message["content"] for message in conversation.messages(asked)]


def test_the_system_comes_first_and_the_turns_in_their_order():
    assert TALK.messages("three") == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "three"},
    ]
    assert Conversation().messages("one") == [{"role": "user", "content": "one"}]


def test_what_is_forgotten_is_not_sent_and_stays_written_down():
    less = TALK.forgetting()
    assert contents(less, "three") == ["be brief", "two", "2", "three"]
    assert less.turns == TALK.turns
    assert not TALK.forgetting(5).can_forget


def test_undoing_takes_the_last_turn():
    assert contents(TALK.undone(), "again") == ["be brief", "one", "1", "again"]
    assert Conversation().undone() == Conversation()
    assert TALK.forgetting(2).undone() == Conversation("be brief", TALK.turns[:1], 1)
    assert TALK.cleared() == Conversation("be brief")


def test_the_oldest_turns_go_where_the_context_has_no_room():
    measure = Measure(characters=4, tokens=1)
    long = Conversation().with_turn("a" * 400, "b" * 400).with_turn("c" * 40, "d" * 40)
    assert fitted(long, "e" * 20, measure, 1000) == long
    assert fitted(long, "e" * 20, measure, 100).forgotten == 1
    assert fitted(long, "e" * 20, measure, 1).forgotten == 2
    assert fitted(long, "e" * 20, Measure(), 1) == long  # nothing was measured yet


@given(
    st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), max_size=8),
    st.text(max_size=20),
    st.integers(1, 200),
)
def test_as_few_turns_go_as_have_to(turns, asked, room):
    conversation, measure = Conversation("s"), Measure(2, 1)
    for question, answer in turns:
        conversation = conversation.with_turn(question, answer)
    kept = fitted(conversation, asked, measure, room)
    is_short = measure.estimate(length(kept.messages(asked))) <= room
    assert is_short or not kept.can_forget
    if kept.forgotten:
        before = Conversation("s", kept.turns, kept.forgotten - 1)
        assert measure.estimate(length(before.messages(asked))) > room


def test_the_room_for_an_answer_is_bounded_by_the_context():
    assert answer_room(4096, None) == 512
    assert answer_room(4096, 100) == 100
    assert answer_room(256, None) == 64
    assert answer_room(256, 10_000) == 64
