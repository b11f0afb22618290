"""Each shipped domain, on sources of the same form: its text is kept, and it can be judged."""

import pytest

from jupiterd.ctl.sources.domain_files import shipped_domains
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.workers.data.clean.clean_batch import TextRules, judge
from jupiterd.workers.data.collectors.kinds import open_collector
from jupiterd.workers.data.pack.hold_out import HoldOutParams, SourceBatches, hold_out, read_before
from jupiterd.workers.data.sorted_samples import SortedSampleWriter
from tests.support.sources.domain_sources import moved, pages_of
from tests.support.workers.collecting import collect, samples_in
from tests.support.workers.local_site import serving

# Half a minute where others use the cores: each source is collected by processes of its own.
pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(180)]

LEAST_KEPT = 0.9
"""Of each source: all of it is written as good text; of Python's library some is generated."""


@pytest.fixture(params=sorted(shipped_domains()))
def domain(request) -> Domain:
    path = shipped_domains()[request.param]
    return parse_domain(path.read_text(encoding="utf-8"), path.name)


def test_a_shipped_domain_keeps_its_text_and_can_be_judged(domain, tmp_path, seed):
    asked = TextRules(domain.language, domain.license_policy, domain.filters.off)
    clean = tmp_path / "clean"
    with serving() as site, SortedSampleWriter(clean) as writer:
        for source in domain.data_sources:
            near = moved(source, tmp_path, site.url, seed)
            for path, body, form in pages_of(near, site.url, seed):
                site.put(path, body, content_type=form)
            collect(open_collector(near), tmp_path / "out" / source.name)
            samples = samples_in(tmp_path / "out" / source.name)
            judged = [judge(sample, asked) for sample in samples]
            kept = [each for each, one in zip(samples, judged, strict=True) if one.reason is None]
            reasons = {str(one.reason) for one in judged if one.reason is not None}
            least = LEAST_KEPT if source.kind != "python_stdlib" else 0.7
            assert len(kept) >= least * len(samples) > 0, f"{source.name}: {reasons}"
            for sample in kept:
                writer.add(sample)
    counts, told = hold_out(
        SourceBatches([clean], []),
        read_before(None, None),
        HoldOutParams(domain.holdout_rules(), domain.language),
        tmp_path / "parts",
    )
    assert counts["dev_documents"] > 0
    assert "it shows, with a chance of" in str(told["holdout"])
