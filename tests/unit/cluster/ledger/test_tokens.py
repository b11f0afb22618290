"""Join tokens: copied without mistakes, proved without being shown, used as often as they allow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import NodeAdmitted, NodeRemoved, TokenIssued, TokenWithdrawn
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.ledger.tokens import (
    LIFETIME_S,
    Side,
    Token,
    TokenTimer,
    is_proved,
    parse_token,
    prove,
)
from jupiterd.errors import UsageError
from jupiterd.ids import ClusterId, NodeId
from tests.support.cluster.building import NODES, admitted

TOKEN = Token(ClusterId("c" * 32), "1" * 16, "2" * 32)
A, B, E = NODES
FOUNDED = (1, A, "u", 1)


def test_a_token_is_read_as_it_was_written() -> None:
    assert parse_token(f"  {str(TOKEN).upper()} \n".replace("JUPITER", "jupiter")) == TOKEN


@given(st.integers(min_value=8), st.sampled_from("abcdefghijklmnopqrstuvwxyz234567"))
def test_a_mistyped_token_is_refused(position: int, letter: str) -> None:
    text = str(TOKEN)
    position = 8 + position % (len(text) - 9)  # the last letter holds spare bits
    wrong = text[:position] + letter + text[position + 1 :]
    if wrong == text:
        assert parse_token(wrong) == TOKEN
    else:
        with pytest.raises(UsageError, match="a character of it is wrong"):
            parse_token(wrong)


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    for tried in (text, f"jupiter-{text}"):
        with pytest.raises(UsageError):
            parse_token(tried)


def test_a_proof_holds_for_one_side_one_cluster_and_two_nodes_alone() -> None:
    proof = prove(TOKEN.secret, Side.NEWCOMER, TOKEN.cluster, B, A)
    assert is_proved(prove(TOKEN.secret, Side.NEWCOMER, TOKEN.cluster, B, A), proof)
    for other in (
        prove("3" * 32, Side.NEWCOMER, TOKEN.cluster, B, A),
        prove(TOKEN.secret, Side.MEMBER, TOKEN.cluster, B, A),
        prove(TOKEN.secret, Side.NEWCOMER, ClusterId("d" * 32), B, A),
        prove(TOKEN.secret, Side.NEWCOMER, TOKEN.cluster, E, A),
        prove(TOKEN.secret, Side.NEWCOMER, TOKEN.cluster, B, E),
        b"",
    ):
        assert not is_proved(other, proof)


def state_with(token: TokenIssued) -> State:
    state = State()
    state.apply(admitted(A), FOUNDED)
    state.apply(token, (1, A, "u", 2))
    return state


def let_in(node: NodeId) -> NodeAdmitted:
    return NodeAdmitted(node, "new", b"certificate", "it has the token", TOKEN.id)


def test_a_token_is_used_up_and_stays_so_when_who_used_it_is_removed() -> None:
    state = state_with(TokenIssued(TOKEN.id, TOKEN.secret, 1))
    assert list(state.tokens) == [TOKEN.id]
    state.apply(let_in(B), (1, A, "u", 3))
    assert list(state.tokens) == []
    state.apply(NodeRemoved(B, state.roster.admissions_of(B), {}), (1, A, "u", 4))
    assert list(state.tokens) == []
    assert list(state.issued_tokens) == [TOKEN.id]


def test_a_token_for_any_number_lasts_until_it_is_withdrawn() -> None:
    state = state_with(TokenIssued(TOKEN.id, TOKEN.secret, 0))
    for index, node in enumerate((B, E), 3):
        state.apply(let_in(node), (1, A, "u", index))
    assert list(state.tokens) == [TOKEN.id]
    state.apply(TokenWithdrawn(TOKEN.id, "somebody withdrew it"), (1, A, "u", 9))
    assert list(state.tokens) == []


def test_a_token_is_too_old_after_a_day_of_one_leaders_clock() -> None:
    timer = TokenTimer()
    assert timer.expired(50.0, ["a"]) == []
    assert timer.expired(60.0, ["a", "b"]) == []
    assert timer.expired(49.0 + LIFETIME_S, ["a", "b"]) == []
    assert timer.expired(50.0 + LIFETIME_S, ["a", "b"]) == ["a"]
    assert timer.expired(55.0 + LIFETIME_S, ["b"]) == []
