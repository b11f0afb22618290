"""How a round's generating is cut into items."""

from dataclasses import replace

import pytest

from jupiterd.cycle.base.key_hosts import is_loopback
from jupiterd.cycle.domain.domain import CompleteFunctionTemplate, RewritingTemplate
from jupiterd.cycle.domain.generator import Generator, generator_from, server_parts
from jupiterd.cycle.generation.generation_options import pieces_of, seed_of
from jupiterd.cycle.generation.promotion import GeneratorShare
from jupiterd.errors import UsageError

FUNCTIONS = CompleteFunctionTemplate(kind="complete_function", samples=300)
OURS, OTHERS = Generator("ours", "a" * 64), Generator("theirs", "b" * 64)
FAQ = RewritingTemplate(kind="faq", samples=100)


def by_one(_kind: str) -> tuple[GeneratorShare, ...]:
    return (GeneratorShare(OTHERS, 1.0),)


def test_a_quota_is_cut_into_items_of_like_size():
    pieces = pieces_of([FUNCTIONS, FAQ], by_one)
    assert [(piece.template.kind, piece.samples) for piece in pieces] == [
        ("complete_function", 90), ("complete_function", 90), ("complete_function", 90),
        ("complete_function", 30), ("faq", 90), ("faq", 10),
    ]  # fmt: skip
    told = [piece.params(number, "7/2") for number, piece in enumerate(pieces)]
    assert [(each["stripe"], each["stripes"]) for each in told] == [(n, 6) for n in range(6)]
    assert {each["order"] for each in told} == {"7/2"}
    assert len({each["seed"] for each in told}) == 6


def test_a_canary_has_a_tenth_of_each_quota_and_the_usual_writer_the_rest():
    writers = (GeneratorShare(OTHERS, 0.9), GeneratorShare(OURS, 0.1))
    pieces = pieces_of([FUNCTIONS, FAQ], lambda _: writers)
    quotas = {(p.template.kind, p.generator.name): 0 for p in pieces}
    for piece in pieces:
        quotas[piece.template.kind, piece.generator.name] += piece.samples
    assert quotas == {
        ("complete_function", "theirs"): 270, ("complete_function", "ours"): 30,
        ("faq", "theirs"): 90, ("faq", "ours"): 10,
    }  # fmt: skip


def test_a_canary_without_anybody_beside_it_has_its_tenth_alone():
    pieces = pieces_of([FAQ], lambda _: (GeneratorShare(OURS, 0.1),))
    assert [(piece.generator, piece.samples, piece.stripes) for piece in pieces] == [(OURS, 10, 1)]


def test_a_tiny_quota_is_never_exceeded():
    tiny = RewritingTemplate(kind="faq", samples=1)
    pieces = pieces_of([tiny], lambda _: (GeneratorShare(OTHERS, 0.9), GeneratorShare(OURS, 0.1)))
    assert [(piece.generator, piece.samples) for piece in pieces] == [(OURS, 1)]


def test_a_huge_quota_makes_larger_items_instead_of_thousands():
    pieces = pieces_of(
        [CompleteFunctionTemplate(kind="complete_function", samples=100_000)], by_one
    )
    assert len(pieces) == 64
    assert sum(piece.samples for piece in pieces) == 100_000


def test_a_seed_follows_from_the_item_alone():
    assert seed_of("7/2", 3) == seed_of("7/2", 3)
    assert len({seed_of(order, number) for order in ("7/2", "7/3") for number in range(9)}) == 18


def test_a_generator_is_a_model_or_a_server_and_holds_no_key():
    server = Generator("m", url="http://box:11434/v1", model="m", api_key_env="BOX_API_KEY")
    assert generator_from(server.to_plain()) == server
    assert server.id == "http://box:11434/v1#m"
    model = Generator("mine", artifact="ab" * 32)
    assert generator_from(model.to_plain()) == model
    assert generator_from({}) is None


@pytest.mark.parametrize(
    "plain",
    [
        {"name": "neither"},
        {"artifact": "ab" * 32, "url": "http://box/v1", "model": "m"},
        {"artifact": "../../etc"},
        {"url": "http://box/v1"},
        {"url": "ftp://box/v1", "model": "m"},
        {"url": "http://user:secret@box/v1", "model": "m"},
        {"url": "http://[::1/v1", "model": "m"},
        {"url": "http://box:99999999/v1", "model": "m"},
        {"url": "http://box/v1", "model": "m", "api_key_env": "PATH"},
    ],
)
def test_what_can_be_no_generator_is_refused(plain: dict[str, str]):
    with pytest.raises(UsageError):
        generator_from(plain)


def test_an_address_says_its_model_and_whether_others_can_reach_it():
    assert server_parts("http://box:1234/v1/#org/model") == ("http://box:1234/v1", "org/model")
    assert is_loopback("http://localhost:11434/v1")
    assert is_loopback("http://127.0.0.1/v1")
    assert is_loopback("http://[::1]:80/v1")
    assert not is_loopback("https://api.example.org/v1")


@pytest.mark.parametrize("samples", [1, 6, 200, 5_000, 100_000])
def test_the_items_before_the_canarys_are_the_same_whoever_is_promoted(samples: int):
    template = RewritingTemplate(kind="faq", samples=samples)
    before = pieces_of([FUNCTIONS, template], by_one)
    after = pieces_of(
        [FUNCTIONS, template], lambda _: (GeneratorShare(OTHERS, 0.9), GeneratorShare(OURS, 0.1))
    )
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert replace(one, generator=OURS) == replace(other, generator=OURS)
        assert one.generator == other.generator or other.is_for_canary
