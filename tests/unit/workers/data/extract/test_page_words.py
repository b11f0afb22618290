"""No word of a page's text is lost on the way to Markdown."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from trafilatura import extract
from trafilatura.utils import load_html

from jupiterd.workers.data.extract.extraction import Extractor

HANDBOOK = Path(os.environ.get("JUPITER_HANDBOOK", "/usr/share/doc/debian-handbook/html/en-US"))
"""Pages that nobody here wrote, where Debian's package debian-handbook is installed."""

MIN_SHARE = 0.99
_WORD = re.compile(r"[^\W_]+")

LONG = "People who build a house look at its ground first, and measure it with great care. " * 3
PAGE = f"""<html><head><title>Records</title></head><body>
<div class="sphinxsidebar"><ul><li><a href="#a">a()</a></li><li><a href="#b">b()</a></li></ul></div>
<div class="body"><h1>Records<a class="headerlink" href="#records" title="Permalink">¶</a></h1>
<div class="para">{LONG} See <code>named.conf</code>
first.</div>
<dl><dt><code>A</code></dt><dd><p>(<em>address record</em>): an address <code>x</code> of four
bytes, and words after it.</p><p>A second paragraph of it.</p></dd>
<dt class="sig">f(<em>x=None</em>)<a class="headerlink" href="#f">¶</a></dt>
<dd><p>{LONG}</p></dd></dl>
<ul><li><div class="para"><code>MX</code> (<em>mail exchange</em>): a server for mail.</div>
<ul><li>An item within.</li></ul></li></ul>
<ol><li>First step.</li><li>Second <b>step</b>.</li></ol>
<div class="highlight-python3"><pre><span>def</span> f():
    <span>return</span> 1</pre></div>
<table><tr><th>Name</th><th>Meaning</th></tr>
<tr><td>A</td><td>one | <code>x</code></td></tr></table>
<blockquote><p>{LONG}</p></blockquote>
<p>{LONG}</p></div><footer>All rights reserved by the people who wrote it.</footer></body></html>"""

WRITTEN = f"""# Records

{LONG}See `named.conf` first.

- `A`: (*address record*): an address `x` of four bytes, and words after it.

  A second paragraph of it.
- f(*x=None*): {LONG.strip()}
- `MX` (*mail exchange*): a server for mail.
  - An item within.
1. First step.
2. Second **step**.

```python
def f():
    return 1
```

| Name | Meaning |
| --- | --- |
| A | one \\| `x` |

> {LONG.strip()}

{LONG.strip()}"""


@pytest.fixture(scope="module")
def shared():
    with Extractor() as extractor:
        yield extractor


def test_a_pages_blocks_are_written_as_markdown_with_all_their_words(shared):
    assert shared.read("html", PAGE.encode()).text == WRITTEN


@pytest.mark.skipif(not HANDBOOK.is_dir(), reason=f"{HANDBOOK} isn't there")
def test_sixty_pages_of_a_handbook_keep_their_words(shared):
    known = kept = 0
    for path in sorted(HANDBOOK.glob("*.html"))[:60]:
        data = path.read_bytes()
        plain = Counter(_WORD.findall(extract(load_html(data), include_comments=False) or ""))
        found = Counter(_WORD.findall(shared.read("html", data).text))
        known, kept = known + plain.total(), kept + (plain & found).total()
        assert "¶" not in shared.read("html", data).text
    print(f"{kept:,} of {known:,} words")
    assert kept >= MIN_SHARE * known
