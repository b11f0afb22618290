import json
import re
from pathlib import Path

import pytest

from jupiterd.ctl.cycle.cycle_arguments import start_arguments
from jupiterd.ctl.domain.domain_schema import domain_schema
from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.sources.domain_files import read_domain_file, shipped_domains
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.errors import InvalidDomainError, NotFoundError
from jupiterd.locations import config_folder


def test_the_list_has_python_and_not_the_template(ctl):
    ran = ctl("domain", "list")
    assert ran.exit_code == 0
    names = [line.split()[0] for line in ran.out.splitlines()]
    assert "python" in names
    assert "_template" not in names


def test_the_list_for_scripts_names_the_file(ctl):
    document = json.loads(ctl("domain", "list", "-o", "json").out)
    python = next(item for item in document["domains"] if item["domain"] == "python")
    assert python["language"] == "code:python"
    assert python["file"].endswith("config/domains/python.yaml")


def test_with_jsonl_each_domain_is_a_line(ctl):
    lines = ctl("domain", "list", "-o", "jsonl").out.splitlines()
    assert [json.loads(line)["domain"] for line in lines] == list(shipped_domains())


def test_the_list_has_the_file_just_written(ctl, here):
    ctl("domain", "new", "cooking", "--language", "es")
    first = ctl("domain", "list").out.splitlines()[1].split()
    assert (first[:2], first[-1]) == (["cooking", "es"], "cooking.yaml")


def test_a_new_domain_s_folder_is_private_unless_its_writer_says_otherwise(ctl, here):
    ctl("domain", "new", "cooking")
    text = (here / "cooking.yaml").read_text()
    assert parse_domain(text, "cooking.yaml").data_sources[0].license == "private"
    silent = parse_domain(text.replace("    license: private\n", ""), "cooking.yaml")
    assert silent.data_sources[0].license == "private"


@pytest.mark.parametrize(
    ("language", "meant"), [("english", "en"), ("code:pyton", "code:python"), ("klingon", "")]
)
def test_an_unknown_language_is_refused_with_its_line_and_the_nearest_right_one(
    daemon, ctl, here, language, meant
):
    assert meant in ctl("domain", "new", "cooking", "--language", language).err
    assert list(here.iterdir()) == []
    ctl("domain", "new", "cooking")
    file = here / "cooking.yaml"
    text = file.read_text()
    file.write_text(text.replace("language: en\n", f"language: {language}\n"))
    line = text.splitlines().index("language: en") + 1
    ran = ctl("domain", "lint", "cooking", "--offline")
    assert ran.exit_code == 2
    assert ran.out.startswith(f"cooking.yaml:{line}: language: expected ")
    assert meant in ran.out
    for verb in ("start", "plan"):
        ran = ctl("cycle", verb, "--domain", "cooking")
        assert (ran.exit_code, daemon.executed) == (2, [])
        assert f"cooking.yaml:{line}: language: expected " in ran.err


def test_without_a_name_the_only_domain_of_the_folder_is_meant(daemon, ctl, here):
    ran = ctl("cycle", "start")
    assert ran.exit_code == 2
    assert "--domain python" in ran.err
    ctl("domain", "new", "cooking")
    assert ctl("cycle", "start").exit_code == 0
    assert daemon.executed[-1][1]["domain_name"] == "cooking"
    ctl("domain", "new", "baking")
    ran = ctl("cycle", "start")
    assert ran.exit_code == 2
    assert "several domains are here: baking, cooking" in ran.err
    assert "hint: say which one: --domain baking" in ran.err


def test_every_shipped_domain_has_no_mistakes(ctl):
    for name in shipped_domains():
        ran = ctl("domain", "lint", name, "--offline")
        assert (ran.exit_code, ran.out.endswith("no mistakes\n")) == (0, True)


def test_lint_shows_every_mistake_with_its_line(ctl, tmp_path):
    file = tmp_path / "odd.yaml"
    file.write_text(shipped_domains()["python"].read_text().replace("version: 1", "version: x"))
    file.write_text(file.read_text() + "\nweather: fine\n")
    ran = ctl("domain", "lint", str(file))
    assert ran.exit_code == 2
    assert len(ran.out.splitlines()) == 2
    assert all(line.startswith(f"{file}:") for line in ran.out.splitlines())
    assert "has 2 mistakes" in ran.err


def test_lint_for_scripts_lists_the_mistakes(ctl, tmp_path):
    file = tmp_path / "odd.yaml"
    file.write_text("version: [")
    ran = ctl("domain", "lint", str(file), "-o", "json")
    assert ran.exit_code == 2
    document = json.loads(ran.out)
    assert document["file"] == str(file)
    assert len(document["mistakes"]) == 1


def test_a_misspelt_domain_is_guessed():
    with pytest.raises(NotFoundError) as caught:
        read_domain_file("pyhton")
    assert caught.value.hint.startswith("did you mean python?")


def test_a_domain_unlike_any_other_is_not_guessed():
    with pytest.raises(NotFoundError) as caught:
        read_domain_file("zzz")
    assert "did you mean" not in caught.value.hint


def test_a_missing_file_is_not_found(ctl, tmp_path):
    ran = ctl("domain", "lint", str(tmp_path / "nowhere.yaml"))
    assert ran.exit_code == 6


def test_a_file_that_is_no_text_is_refused(tmp_path):
    file = tmp_path / "picture.yaml"
    file.write_bytes(b"a: \xff\xfe")
    with pytest.raises(InvalidDomainError, match="expected text in UTF-8, got other bytes"):
        read_domain_file(str(file))


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InvalidDomainError, match="can't be read"):
        read_domain_file(f"{tmp_path}/")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in an empty folder of one's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("options", [(), ("--from-template",)])
def test_a_new_domain_has_its_name_and_no_mistakes(ctl, here, options):
    ran = ctl("domain", "new", "cooking", "--language", "es", *options)
    assert (ran.exit_code, ran.err) == (0, "")
    assert "jupiterctl cycle start --domain cooking" in ran.out
    text = (here / "cooking.yaml").read_text()
    domain = parse_domain(text, "cooking.yaml")
    assert (domain.domain, domain.language, domain.holdout.salt) == ("cooking", "es", "cooking-1")
    assert text.count("#") > 10
    schema = re.search(r"^# yaml-language-server: \$schema=(.*)$", text, re.MULTILINE)
    assert json.loads(Path(schema[1]).read_text())["title"] == "A domain of Jupiter"
    assert ctl("domain", "lint", "cooking", "--offline").exit_code == 0


def test_a_new_domain_overwrites_nothing(ctl, here):
    (here / "cooking.yaml").write_text("mine")
    assert ctl("domain", "new", "cooking").exit_code == 7
    assert (here / "cooking.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (("../up",), 2),
        (("Cooking",), 2),
        (("true",), 2),
        (("python",), 7),
        (("cooking", "--language", "no\nway"), 2),
    ],
)
def test_what_can_be_no_domain_is_refused_and_nothing_is_written(ctl, here, arguments, exit_code):
    assert ctl("domain", "new", *arguments).exit_code == exit_code
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("place", ["cooking.yaml", "cooking.yml", "config/domains/cooking.yaml"])
def test_a_domain_of_one_s_own_is_found_by_its_name(ctl, here, place):
    ctl("domain", "new", "cooking")
    (here / place).parent.mkdir(parents=True, exist_ok=True)
    (here / "cooking.yaml").rename(here / place)
    assert read_domain_file("cooking").path == Path(place)


def test_the_template_can_be_copied_under_another_name(ctl, here):
    template = config_folder() / "domains" / "_template.yaml"
    (here / "my_domain.yaml").write_text(template.read_text())
    assert ctl("domain", "lint", "my_domain", "--offline").exit_code == 0
    assert (
        start_arguments("my_domain", 1, "1m", None, None, fetches=Fetches(), state_dir=Path())[
            "domain_name"
        ]
        == "my_domain"
    )


def test_a_copy_that_names_itself_as_another_is_told_so_with_its_line(ctl, here):
    shipped = (config_folder() / "domains" / "python.yaml").read_text()
    (here / "my_python.yaml").write_text(shipped)
    line = shipped.splitlines().index("domain: python") + 1
    told = f"my_python.yaml:{line}: domain: expected my_python, as the file is called, got python"
    ran = ctl("domain", "lint", "my_python", "--offline")
    assert (ran.exit_code, ran.out.strip()) == (2, told)
    for command in ("start", "plan"):
        ran = ctl("cycle", command, "--domain", "my_python")
        assert ran.exit_code == 2
        assert f"error: {told}" in ran.err
        assert "hint: change that line, or leave it out" in ran.err
    # Whoever names the file means that file, whatever it calls itself.
    assert (
        start_arguments(
            "./my_python.yaml", 1, "1m", None, None, fetches=Fetches(), state_dir=Path()
        )["domain_name"]
        == "python"
    )
    (here / "my_python.yaml").write_text(shipped.replace("domain: python\n", ""))
    assert ctl("domain", "lint", "my_python", "--offline").exit_code == 0
    assert (
        start_arguments("my_python", 1, "1m", None, None, fetches=Fetches(), state_dir=Path())[
            "domain_name"
        ]
        == "my_python"
    )


def test_a_file_whose_name_can_be_no_domain_s_must_say_one(ctl, here):
    shipped = (config_folder() / "domains" / "python.yaml").read_text()
    (here / "My Python.yaml").write_text(shipped.replace("domain: python\n", ""))
    ran = ctl("domain", "lint", "My Python.yaml", "--offline")
    assert ran.exit_code == 2
    assert ran.out.startswith("My Python.yaml:1: domain: expected a name of up to 32 lower-case")


def test_the_schema_that_lies_beside_the_domains_is_current(ctl, here):
    assert ctl("domain", "schema", "--to", "new.json").exit_code == 0
    lying = config_folder() / "domains" / "domain.schema.json"
    assert (here / "new.json").read_text() == lying.read_text(), "jupiterctl domain schema --to it"
    assert ctl("domain", "schema").out == lying.read_text()


def test_every_key_of_the_schema_is_described():
    schema = json.loads(domain_schema())
    parts = {"Domain": schema, **schema["$defs"]}
    keys = {(part, key) for part in parts for key in parts[part].get("properties", {})}
    silent = {
        (part, key)
        for part, key in keys
        if key != "kind" and "description" not in parts[part]["properties"][key]
    }
    assert len(keys) > 80
    assert silent <= {("Domain", key) for key in parts["Domain"]["properties"]}
