"""The papers behind the methods, by the tag that docstrings and answers use."""

from __future__ import annotations

from collections.abc import Iterable

REFERENCES = {
    "SPA": "W. Alghamdi, S. Asoodeh, F. P. Calmon, J. F. Gomez, O. Kosut, L. Sankar, F. Wei: "
    "The Saddle-Point Accountant for Differential Privacy (arXiv 2208.09595, 2022)",
    "EA": "H. Wang, S. Gao, H. Zhang, M. Shen, W. J. Su: Analytical Composition of Differential "
    "Privacy via the Edgeworth Accountant (arXiv 2206.04236, 2022)",
    "FA": "A. Koskela, J. Jälkö, A. Honkela: Computing Tight Differential Privacy Guarantees "
    "Using FFT (AISTATS 2020)",
    "PRV": "S. Gopi, Y. T. Lee, L. Wutschitz: Numerical Composition of Differential Privacy "
    "(NeurIPS 2021)",
    "Daniels": "H. E. Daniels: Tail Probability Approximations (International Statistical Review "
    "55, 1987)",
    "IND": "A. Koskela, M. Tobaben, A. Honkela: Individual Privacy Accounting with Gaussian "
    "Differential Privacy (ICLR 2023)",
}


def full(citations: Iterable[str]) -> list[str]:
    """Return the sources of citations such as "SPA (61)", each once, tags spelled out.

    >>> full(["FA Alg. 1", "FA 6.2"])[0][:26]
    'FA: A. Koskela, J. Jälkö, '
    """
    found: dict[str, None] = {}
    for citation in citations:
        tag = citation.split()[0].rstrip(",:") if citation else ""
        known = REFERENCES.get(tag)
        found[f"{tag}: {known}" if known else citation] = None
    return [text for text in found if text]
