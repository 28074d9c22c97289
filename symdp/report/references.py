"""The sources of a page, by the tags that docstrings and answers use."""

from __future__ import annotations

from collections.abc import Iterable

from symdp.citation import REFERENCES, tag_of


def full(citations: Iterable[str]) -> list[str]:
    """Return the sources of citations such as "SPA (61)", each once, tags spelled out.

    >>> full(["FA Alg. 1", "FA 6.2"])[0][:26]
    'FA: A. Koskela, J. Jälkö, '
    """
    found: dict[str, None] = {}
    for citation in citations:
        known = REFERENCES.get(tag_of(citation))
        found[f"{known.tag}: {known.text()}" if known else citation] = None
    return [text for text in found if text]
