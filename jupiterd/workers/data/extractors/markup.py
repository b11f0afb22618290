"""HTML that another reader wrote, or that a book holds, as Markdown: all of it is text.

Owns how it is parsed. Doesn't know pages of the web, of which a part alone is (`html`).
"""

from jupiterd.workers.data.extractors.leaves import Leaves
from jupiterd.workers.data.extractors.markdown import written


def markdown_of(markup: str | bytes) -> str:
    """Return the text of HTML; empty where it has none."""
    from lxml import html

    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    data = markup.encode() if isinstance(markup, str) else markup
    if not data.strip():
        return ""
    tree = html.document_fromstring(data, parser=parser, ensure_head_body=True)
    return written(Leaves.of(tree.find("body")))
