"""Pages in the form of sources that the shipped domains name and no test reaches: are they kept?"""

import json

import pytest

from jupiterd.cycle.domain.data_sources import FeedSource, JsonlSource, WebSource
from jupiterd.workers.data.clean.clean_batch import TextRules, judge
from jupiterd.workers.data.collectors.feed import Feeds
from jupiterd.workers.data.collectors.jsonl import Jsonl
from jupiterd.workers.data.collectors.web import CrawledSite
from tests.support.workers.collecting import collect, samples_in
from tests.support.workers.local_site import serving

pytestmark = pytest.mark.net

ENGLISH = (
    "Atoms of one element have the same number of protons, and the number of their neutrons may "
    "differ. Such atoms are called isotopes of the element. When two atoms share a pair of "
    "electrons, the bond between them is covalent, and energy is set free. To break the bond, the "
    "same amount of energy has to be supplied again. Acids give protons away, while bases take "
    "them up; water can do both. How strong an acid is can be seen from its constant of "
    "dissociation. In a galvanic cell the reaction takes place at two electrodes, so that the "
    "electrons have to travel along a wire. We report how the rate depends on the temperature of "
    "the mixture, and we compare it with what the theory of the transition state predicts."
)
SPANISH = (
    "El río nace en la sierra, a unos mil metros de altura, y desemboca en el mar después de "
    "atravesar tres provincias. Su cauce fue utilizado durante siglos para mover los molinos de "
    "los pueblos cercanos. En el siglo pasado se construyeron dos presas, que abastecen de agua a "
    "la capital y a los regadíos de la vega. La fauna es muy variada: nutrias, garzas y varias "
    "especies de peces viven en sus orillas. Hoy gran parte del valle es un parque natural, y lo "
    "visitan cada año miles de personas. Los primeros documentos que hablan del río son del siglo "
    "doce. Según ellos, el rey concedió a los monjes el derecho a pescar en él."
)
BOOK_PAGE = f"""<!doctype html><html><head><title>Bonds</title></head><body>
<div id="mw-navigation"><ul><li><a href="/wiki/Main_Page">Main page</a></li></ul></div>
<div id="content"><h1>Bonds</h1><div id="toc"><ul><li><a href="#A">1 Atoms</a></li></ul></div>
<h2>Atoms<span class="mw-editsection">[<a href="/edit">edit</a>]</span></h2>
<p>{ENGLISH}</p><table class="wikitable"><tr><th>Element</th><th>Z</th></tr>
<tr><td>Carbon</td><td>6</td></tr></table><h2>Acids</h2><p>Another page says more of them.</p></div>
<div id="footer">Text is available under a licence.</div></body></html>"""
ABSTRACT = f"""<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>physics.chem-ph</title>
 <entry><id>oai:arXiv.org:2401.00001v1</id><updated>2026-01-01T00:00:00Z</updated>
  <title>On bonds</title><link href="https://arxiv.org/abs/2401.00001" rel="alternate"/>
  <summary>arXiv:2401.00001v1 Announce Type: new Abstract: {ENGLISH}</summary></entry></feed>"""


def reasons(output, language):
    """Return why each collected text is dropped, None where it is kept."""
    return [judge(sample, TextRules(language)).reason for sample in samples_in(output)]


@pytest.fixture
def site():
    with serving() as started:
        yield started


def test_a_page_of_a_textbook_in_a_wiki_is_kept_without_its_navigation(site, tmp_path):
    site.put("/wiki/Bonds", BOOK_PAGE)
    source = WebSource(
        kind="web", urls=(f"{site.url}/wiki/Bonds",), delay_s=0.0, allow_private_addresses=True
    )
    collect(CrawledSite(source), tmp_path)
    assert reasons(tmp_path, "en") == [None]
    (sample,) = samples_in(tmp_path)
    assert "constant of dissociation" in sample.text
    assert "Main page" not in sample.text


def test_an_abstract_is_kept(site, tmp_path):
    site.put("/feed", ABSTRACT, content_type="application/atom+xml")
    source = FeedSource(
        kind="feed", urls=(f"{site.url}/feed",), delay_s=0.0, allow_private_addresses=True
    )
    collect(Feeds(source), tmp_path)
    assert reasons(tmp_path, "en") == [None]


def test_an_article_of_an_encyclopedia_is_kept_and_a_list_of_names_is_not(tmp_path):
    body = SPANISH.replace(". ", ".\n\n")
    article = f"{body}\n\nVéase también\n\nReferencias\n\nEnlaces externos"
    names = "Siglo XII\n\n" + "\n".join(f"Nombre {number}" for number in range(80))
    rows = [{"text": article, "url": "https://es.example/wiki/Rio"}, {"text": names, "url": "u"}]
    (tmp_path / "wiki.jsonl").write_text("\n".join(map(json.dumps, rows)))
    fields = {"path": str(tmp_path / "wiki.jsonl"), "license": "MIT", "uri_field": "url"}
    collect(Jsonl(JsonlSource(kind="jsonl", **fields)), tmp_path / "out")
    kinds = {sample.source_uri: sample.document_kind for sample in samples_in(tmp_path / "out")}
    assert set(kinds.values()) == {"prose"}
    assert [reason is None for reason in reasons(tmp_path / "out", "es")] == [True, False]
