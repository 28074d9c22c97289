"""What a result rests on, as BibTeX: the papers by the tags that docstrings and answers use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """One publication: its tag, its BibTeX type and fields.

    `authors` are "Last, First" and `short` is how a list of sources shows where it appeared.
    """

    tag: str
    kind: str
    key: str
    title: str
    authors: tuple[str, ...]
    year: int
    short: str
    fields: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """Return one line: authors, title, where and when."""
        names = []
        for author in self.authors:
            last, _, first = author.partition(", ")
            initials = " ".join(f"{part[0]}." for part in first.split())
            names.append(f"{initials} {last}".strip())
        return f"{', '.join(names)}: {self.title} ({self.short})"

    def bibtex(self) -> str:
        """Return the entry, in letters that every BibTeX reads."""
        fields = [
            ("title", f"{{{_latex(self.title)}}}"),
            ("author", _latex(" and ".join(self.authors))),
            *((name, _latex(value)) for name, value in self.fields),
            ("year", str(self.year)),
        ]
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields)
        return f"@{self.kind}{{{self.key},\n{lines}\n}}"


def _arxiv(number: str) -> tuple[tuple[str, str], ...]:
    return ("eprint", number), ("archivePrefix", "arXiv")


_SHEVTSOVA = "Shevtsova, Irina"
_ALL = (
    Reference(
        "SPA", "misc", "alghamdi2022saddlepoint",
        "The Saddle-Point Accountant for Differential Privacy",
        (
            "Alghamdi, Wael", "Asoodeh, Shahab", "Calmon, Flavio P.", "Gomez, Juan Felipe",
            "Kosut, Oliver", "Sankar, Lalitha", "Wei, Fei",
        ),
        2022, "arXiv 2208.09595, 2022",
        (
            *_arxiv("2208.09595"),
            ("note", "Published as The Saddle-Point Method in Differential Privacy, ICML 2023, "
             "PMLR 202:508-528"),
        ),
    ),
    Reference(
        "EA", "misc", "wang2022edgeworth",
        "Analytical Composition of Differential Privacy via the Edgeworth Accountant",
        ("Wang, Hua", "Gao, Sheng", "Zhang, Huanyu", "Shen, Milan", "Su, Weijie J."),
        2022, "arXiv 2206.04236, 2022", _arxiv("2206.04236"),
    ),
    Reference(
        "FA", "inproceedings", "koskela2020fft",
        "Computing Tight Differential Privacy Guarantees Using FFT",
        ("Koskela, Antti", "Jälkö, Joonas", "Honkela, Antti"),
        2020, "AISTATS 2020",
        (
            ("booktitle", "International Conference on Artificial Intelligence and Statistics"),
            ("series", "Proceedings of Machine Learning Research"), ("volume", "108"),
            ("pages", "2560--2569"),
        ),
    ),
    Reference(
        "PRV", "inproceedings", "gopi2021numerical",
        "Numerical Composition of Differential Privacy",
        ("Gopi, Sivakanth", "Lee, Yin Tat", "Wutschitz, Lukas"),
        2021, "NeurIPS 2021",
        (
            ("booktitle", "Advances in Neural Information Processing Systems"), ("volume", "34"),
            *_arxiv("2106.02848"),
        ),
    ),
    Reference(
        "IND", "inproceedings", "koskela2023individual",
        "Individual Privacy Accounting with Gaussian Differential Privacy",
        ("Koskela, Antti", "Tobaben, Marlon", "Honkela, Antti"),
        2023, "ICLR 2023",
        (
            ("booktitle", "International Conference on Learning Representations"),
            *_arxiv("2209.15596"),
        ),
    ),
    Reference(
        "Balle2019", "inproceedings", "balle2019blanket",
        "The Privacy Blanket of the Shuffle Model",
        ("Balle, Borja", "Bell, James", "Gascón, Adrià", "Nissim, Kobbi"),
        2019, "CRYPTO 2019, arXiv 1903.02837",
        (("booktitle", "Advances in Cryptology"), *_arxiv("1903.02837")),
    ),
    Reference(
        "Feldman2021", "inproceedings", "feldman2021hiding",
        "Hiding Among the Clones: A Simple and Nearly Optimal Analysis of Privacy Amplification "
        "by Shuffling",
        ("Feldman, Vitaly", "McMillan, Audra", "Talwar, Kunal"),
        2021, "FOCS 2021, arXiv 2012.12803",
        (("booktitle", "IEEE Symposium on Foundations of Computer Science"),
         *_arxiv("2012.12803")),
    ),
    Reference(
        "Meiser2018", "inproceedings", "meiser2018tight",
        "Tight on Budget? Tight Bounds for r-Fold Approximate Differential Privacy",
        ("Meiser, Sebastian", "Mohammadi, Esfandiar"),
        2018, "CCS 2018",
        (("booktitle", "ACM SIGSAC Conference on Computer and Communications Security"),),
    ),
    Reference(
        "Daniels", "article", "daniels1987tail", "Tail Probability Approximations",
        ("Daniels, Henry E.",),
        1987, "International Statistical Review 55, 1987",
        (("journal", "International Statistical Review"), ("volume", "55"), ("pages", "37--48")),
    ),
    Reference(
        "Derumigny", "article", "derumigny2023explicit",
        "Explicit Non-Asymptotic Bounds for the Distance to the First-Order Edgeworth Expansion",
        ("Derumigny, Alexis", "Girard, Lucas", "Guyonvarch, Yannick"),
        2023, "Sankhya A, 2023", (("journal", "Sankhya A"),),
    ),
    Reference(
        "BBG", "inproceedings", "balle2018subsampling",
        "Privacy Amplification by Subsampling: Tight Analyses via Couplings and Divergences",
        ("Balle, Borja", "Barthe, Gilles", "Gaboardi, Marco"),
        2018, "NeurIPS 2018",
        (
            ("booktitle", "Advances in Neural Information Processing Systems"), ("volume", "31"),
            *_arxiv("1807.01647"),
        ),
    ),
    Reference(
        "ZDW", "inproceedings", "zhu2022optimal",
        "Optimal Accounting of Differential Privacy via Characteristic Function",
        ("Zhu, Yuqing", "Dong, Jinshuo", "Wang, Yu-Xiang"),
        2022, "AISTATS 2022",
        (
            ("booktitle", "International Conference on Artificial Intelligence and Statistics"),
            *_arxiv("2106.08567"),
        ),
    ),
    Reference(
        "FS", "misc", "feldman2025allocation", "Privacy Amplification by Random Allocation",
        ("Feldman, Vitaly", "Shenfeld, Moshe"),
        2025, "arXiv 2502.08202, 2025", _arxiv("2502.08202"),
    ),
    Reference(
        "BB", "misc", "chua2024balls", "Balls-and-Bins Sampling for DP-SGD",
        (
            "Chua, Lynn", "Ghazi, Badih", "Harrison, Charlie", "Leeman, Ethan", "Kamath, Pritish",
            "Kumar, Ravi", "Manurangsi, Pasin", "Sinha, Amer", "Zhang, Chiyuan",
        ),
        2024, "arXiv 2412.16802, 2024", _arxiv("2412.16802"),
    ),
    Reference(
        "Prawitz", "article", "prawitz1972limits",
        "Limits for a Distribution, if the Characteristic Function is Given in a Finite Domain",
        ("Prawitz, H.",),
        1972, "Skandinavisk Aktuarietidskrift, 1972",
        (("journal", "Skandinavisk Aktuarietidskrift"), ("pages", "138--154")),
    ),
    Reference(
        "Shevtsova2010", "article", "shevtsova2010improvement",
        "An Improvement of Convergence Rate Estimates in the Lyapunov Theorem", (_SHEVTSOVA,),
        2010, "Doklady Mathematics 82, 2010",
        (("journal", "Doklady Mathematics"), ("volume", "82"), ("pages", "862--864")),
    ),
)  # fmt: skip
REFERENCES = {reference.tag: reference for reference in _ALL}


def tag_of(citation: str) -> str:
    """Return the tag that a citation starts with."""
    if citation.strip():
        return citation.split(maxsplit=1)[0].rstrip(",:")
    return ""


def bibtex(citations: Iterable[str]) -> str:
    """Return BibTeX entries of citations such as "SPA (61)", each publication once, in order."""
    entries: dict[str, None] = {}
    free = 0
    for citation in citations:
        if not citation.strip():
            continue
        reference = REFERENCES.get(tag_of(citation))
        if reference is None:
            free += 1
            note = _latex(" ".join(citation.split()))
            entries.setdefault(f"@misc{{source{free},\n  note = {{{note}}}\n}}")
        else:
            entries.setdefault(reference.bibtex())
    return "\n\n".join(entries)


_ACCENTS = {
    "ä": r"{\"a}", "ö": r"{\"o}", "ü": r"{\"u}", "Ä": r"{\"A}", "Ö": r"{\"O}", "Ü": r"{\"U}",
    "é": r"{\'e}", "è": r"{\`e}", "ß": r"{\ss}", "å": r"{\aa}", "ø": r"{\o}", "ç": r"{\c c}",
    "ó": r"{\'o}", "à": r"{\`a}", "–": "--", "—": "---",
    "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "{": r"\{", "}": r"\}",
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def _latex(text: str) -> str:
    return "".join(_ACCENTS.get(letter, letter) for letter in text)
