"""The calculator of the documentation: one page, every noise and sampling that a program serves."""

from __future__ import annotations

from symdp import mechanisms
from symdp.page.html import to_html
from symdp.page.panel import Panel, explorer

_NOISES = {
    "gaussian": ("Gaussian noise", {"sigma": "20"}),
    "laplace": ("Laplace noise", {"b": "5", "n": "1000"}),
    "logistic": ("Logistic noise", {"s": "10"}),
    "student_t": ("Student t noise", {"nu": "3", "s": "20"}),
    "discrete_gaussian": ("Discrete Gaussian noise", {"sigma": "20"}),
    "discrete_laplace": ("Discrete Laplace noise", {"b": "20"}),
}
_SAMPLED = ("gaussian", "laplace", "logistic", "student_t")
_SCHEMES = {"poisson": "Poisson sampling", "without_replacement": "batches of a fixed size"}
_TRAINED = {"sigma": "1.12", "examples": "60000", "batch": "256", "epochs": "60"}


def _panel(
    name: str, title: str, values: dict[str, str], scheme: str = "", rate: str = ""
) -> Panel:
    mechanism = getattr(mechanisms, name)
    own = [p.name for p in mechanism.declared]
    command = " ".join([name, *(f"{one}={{{one}}}" for one in own)])
    python = f"symdp.mechanisms.{name}({', '.join(f'{one}={{{one}}}' for one in own)})"
    if scheme:
        mechanism = mechanism.subsample(scheme, "q")
        command += f" --sampling {scheme} --rate {{q}}"
        python += f'.subsample("{scheme}", {{q}})'
    python = f"symdp.compose({python}, {{n}})"
    return Panel(title, mechanism, values, f"{command} -n {{n}}", python, rate)


def calculator() -> str:
    """Return the page."""
    panels = [_panel("gaussian", "DP-SGD: a model trained with noise", _TRAINED, "poisson", "q")]
    panels += [_panel(name, title, values) for name, (title, values) in _NOISES.items()]
    for scheme, words in _SCHEMES.items():
        for name in _SAMPLED:
            title, values = _NOISES[name]
            first = {key: "1" if key in ("sigma", "b") else "3" for key in values} | {"n": "10000"}
            if scheme == "poisson" or name == "gaussian":
                panels.append(_panel(name, f"{title}, {words}", first, scheme))
    told = "What a job costs: choose the noise and the sampling, and move the sliders."
    return to_html(explorer("Privacy calculator", told, panels))
