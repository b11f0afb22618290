"""What people say of a cycle's training, in its domain and its size's recipe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.generation.usual_templates import domain_with
from jupiterd.cycle.runs.cycle_options import CycleOptions
from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.plan import derive, parse_model
from jupiterd.errors import InvalidDomainError, UsageError
from jupiterd.locations import config_folder

DOMAIN = (config_folder() / "domains" / "python.yaml").read_text()
TARGETS = ("all", "attention", "mlp", "q_proj+v_proj")
MODEL = (config_folder() / "models" / "1m.yaml").read_text()


def test_nothing_said_leaves_both_texts_as_they_are():
    options = CycleOptions.parse({})
    domain = parse_domain(DOMAIN, "python.yaml")
    assert options.in_domain(DOMAIN, domain) == (DOMAIN, domain)
    assert options.in_model(MODEL) == MODEL


def test_length_and_rate_are_said_as_if_the_domain_s_training_had_them():
    options = CycleOptions.parse({"seq_len": 128, "learning_rate": 0.001})
    text, domain = options.in_domain(DOMAIN, parse_domain(DOMAIN, "python.yaml"))
    assert (domain.training.seq_len, domain.training.learning_rate) == (128, 0.001)
    assert parse_domain(text, "python.yaml") == domain


@given(rank=st.integers(1, 1024), layers=st.integers(0, 99), targets=st.sampled_from(TARGETS))
def test_an_adapter_is_said_as_if_the_domain_s_training_had_it(rank, layers, targets):
    said = AdapterOptions(rank=rank, layers=layers, targets=targets).to_text()
    options = CycleOptions.parse({"lora": said})
    text, domain = options.in_domain(DOMAIN, parse_domain(DOMAIN, "python.yaml"))
    assert domain.training.lora == said
    again = parse_domain(text, "python.yaml")
    assert again == domain
    assert "lora" not in again.training.overrides()
    assert CycleOptions.parse({"lora": "off"}).in_domain(text, again)[1].training.lora is None


@pytest.mark.parametrize(
    ("said", "of_domain", "found"),
    [
        ({"lora": "rank=8", "quantize": "4bit"}, "", "rank=8,quantize=4bit"),
        ({"quantize": "8bit"}, "rank=2", "rank=2,quantize=8bit"),
        ({"quantize": "none"}, "quantize=4bit,rank=2", "rank=2,quantize=none"),
        ({"lora": "off", "quantize": "none"}, "rank=2", None),
        ({"quantize": "none"}, "", None),
    ],
)
def test_what_its_base_is_kept_in_is_a_part_of_the_adapter_s_text(said, of_domain, found):
    more = f"\ntraining: {{lora: '{of_domain}'}}\n" if of_domain else ""
    domain = parse_domain(DOMAIN + more, "python.yaml")
    _, domain = CycleOptions.parse(said).in_domain(DOMAIN + more, domain)
    assert domain.training.lora == found


def test_what_it_is_kept_in_is_not_said_twice_nor_without_an_adapter():
    domain = parse_domain(DOMAIN, "python.yaml")
    twice = CycleOptions.parse({"lora": "quantize=8bit", "quantize": "4bit"})
    with pytest.raises(UsageError, match="quantize is said twice"):
        twice.in_domain(DOMAIN, domain)
    for said in ({"quantize": "4bit"}, {"lora": "off", "quantize": "4bit"}):
        with pytest.raises(UsageError, match="only a model that stays as it is") as caught:
            CycleOptions.parse(said).in_domain(DOMAIN, domain)
        assert "--lora --quantize 4bit" in (caught.value.hint or "")


def test_a_domain_s_adapter_is_checked_as_its_file_is_read():
    with pytest.raises(InvalidDomainError, match="rnk=4 is none of rank"):
        parse_domain(f"{DOMAIN}\ntraining: {{lora: rnk=4}}\n", "python.yaml")


def test_what_the_domain_leaves_out_stays_left_out_so_that_a_generator_has_its_usual_tasks():
    said = "data_sources: [{kind: folder, path: ~/notes, license: private}]"
    told = (
        f"version: 1\ndomain: notes\ntitle: Notes\nlanguage: en\n{said}\nholdout: {{salt: n-1}}\n"
    )
    options = CycleOptions.parse({"learning_rate": 0.001})
    text, _ = options.in_domain(told, parse_domain(told, "notes.yaml"))
    before, after = (
        domain_with(parse_domain(each, "notes.yaml"), {"name": "ours"}) for each in (told, text)
    )
    assert after.generation == before.generation
    assert after.generation.templates


def test_the_recipe_has_how_it_is_computed_in_every_round():
    said = {"precision": "bf16", "optimizer": "muon", "attention": "sdpa", "batch_size": 2}
    shape = parse_model(CycleOptions.parse(said).in_model(MODEL))
    for number in (1, 2):
        plan = derive(shape, number)
        assert (plan.options.precision, plan.options.optimizer) == ("bf16", "muon")
        assert plan.micro_batch_sequences == 2
        assert plan.batch_sequences == parse_model(MODEL).recipe.batch_sequences


def test_a_step_takes_at_least_what_a_device_holds_at_a_time():
    shape = parse_model(CycleOptions.parse({"batch_size": 512}).in_model(MODEL))
    assert derive(shape, 1).batch_sequences == 512


def test_a_fixed_micro_batch_changes_no_batch_and_nothing_that_is_learned():
    shape = parse_model(CycleOptions.parse({"fixed_micro_batch": 3}).in_model(MODEL))
    plan, before = derive(shape, 1), derive(parse_model(MODEL), 1)
    assert (plan.micro_batch_sequences, plan.options.micro_batch) == (3, "fixed")
    assert plan.batch_sequences == before.batch_sequences
    assert plan.hash() == before.hash()


@pytest.mark.parametrize("said", [{"seq_len": 3}, {"learning_rate": 0}, {"precision": "int4"}])
def test_what_cannot_be_is_refused(said):
    with pytest.raises(UsageError):
        CycleOptions.parse(said)
