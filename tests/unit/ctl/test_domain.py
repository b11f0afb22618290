import json

import pytest

from jupiterd.ctl.domain_files import read_domain_file, shipped_domains
from jupiterd.errors import InvalidDomainError, NotFoundError


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


def test_every_shipped_domain_has_no_mistakes(ctl):
    for name in shipped_domains():
        ran = ctl("domain", "lint", name)
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
