"""`symdp derive --check -o FILE` and names of sections that are none."""

import pytest
from shell import Shell


@pytest.mark.slow
def test_a_supplement_is_a_document(shell: Shell, tmp_path):
    file = tmp_path / "supplement.tex"
    done = shell("derive laplace b=2 --only loss --time-limit 2 --check -o", str(file))
    assert done.code == 0, done.err
    text = file.read_text(encoding="utf-8")
    assert text.startswith("\\documentclass{article}")
    assert "\\subsubsection*{Checks}" in text
    assert "p = lambda x: (mpf(1)/mpf(4))*exp(-mpf(1)/mpf(2)*abs(x - 1))\\\\" in text
    assert text.endswith("\\end{document}\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("laplace --only wrong", "no section or formula is called 'wrong'"),
        ("laplace --only cumulant", "did you mean 'cumulants'"),
        ("randomized_response --check", "--check needs a pair of densities"),
        ("laplace --format json --check", "--check needs --format text, latex"),
        ("laplace --format json -o a.tex", "-o writes a document of --format latex"),
        ("laplace -o a.pdf", "the name must end in .tex"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(shell: Shell, arguments, told):
    done = shell(f"derive {arguments}")
    assert done.code == 2
    assert told in done.err
    assert done.out == ""
