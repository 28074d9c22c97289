"""Emitted accountants for tests: the mechanisms, and both targets behind one interface."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from functools import cache
from pathlib import Path
from types import ModuleType

import mpmath
import sympy as sp

import symdp
from symdp import mechanisms
from symdp.law.standalone import to_python

COMPILER = shutil.which("cc") or shutil.which("gcc")
ORDER = 2
X = sp.Symbol("x")
B = sp.Symbol("b", positive=True)
EXPONENTIAL = symdp.Mechanism.additive(sp.exp(-X / B) / B, X, support=(0, sp.oo), name="one-sided")
HALF_CAUCHY = symdp.Mechanism.additive(
    40 / (sp.pi * (400 + X**2)), X, support=(0, sp.oo), name="half_cauchy"
)
UNIFORM = symdp.Mechanism.additive(sp.Rational(1, 4), X, support=(0, 4), name="uniform")

# name -> mechanism, parameters that stay free in the emitted code, direction
CASES = {
    "gaussian": (mechanisms.gaussian, {"sigma": 1.5}, "remove"),
    "laplace": (mechanisms.laplace, {"b": 2}, "remove"),
    "logistic": (mechanisms.logistic, {"s": 4}, "add"),
    "gumbel": (mechanisms.gumbel, {"b": 3}, "remove"),
    "gumbel added": (mechanisms.gumbel, {"b": 3}, "add"),
    "randomized response": (mechanisms.randomized_response, {"epsilon_0": 0.5}, "remove"),
    "discrete laplace": (mechanisms.discrete_laplace, {"b": 5}, "remove"),
    "student t": (mechanisms.student_t(nu=3, s=2), {}, "remove"),
    "discrete gaussian": (mechanisms.discrete_gaussian(sigma=3), {}, "remove"),
    "subsampled gaussian": (
        mechanisms.gaussian(sigma=1.5).subsample("poisson", "1/100"),
        {},
        "remove",
    ),
    "subsampled laplace": (mechanisms.laplace(b=2).subsample("poisson", "1/10"), {}, "add"),
    "one-sided": (EXPONENTIAL, {"b": 1000}, "add"),
    "half Cauchy with mass at infinity": (HALF_CAUCHY, {}, "add"),
    "uniform": (UNIFORM, {}, "remove"),
}


@cache
def derived(case: str) -> symdp.Derivation:
    mechanism, _, direction = CASES[case]
    return symdp.derive(mechanism, direction)


@cache
def python_module(case: str, order: int = ORDER) -> ModuleType:
    return run_python(to_python(derived(case), order))


def run_python(code: str) -> ModuleType:
    module = ModuleType("emitted")
    exec(compile(code, "emitted.py", "exec"), module.__dict__)
    return module


class CModule:
    """The compiled file behind the interface of the Python one."""

    def __init__(self, folder: Path, name: str, parameters: int, code: str) -> None:
        source, library = folder / f"{name}.c", folder / f"{name}.so"
        source.write_text(code, encoding="utf-8")
        strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2"]
        command = [COMPILER, *strict, "-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
        subprocess.run(command, check=True, timeout=60)
        self.name, self.library = name, ctypes.CDLL(str(library))
        double, pointer = ctypes.c_double, ctypes.POINTER(ctypes.c_double)
        free = [double] * parameters
        counted = [double, ctypes.c_longlong, ctypes.c_int, *free]
        self._log_delta = getattr(self.library, f"{name}_log_delta")
        self._log_delta.argtypes = [*counted, pointer, pointer]
        self._epsilon = getattr(self.library, f"{name}_epsilon")
        self._epsilon.argtypes = [*counted, pointer]
        self._cgf = getattr(self.library, f"{name}_cgf")
        self._cgf.argtypes = [double, ctypes.c_int, *free, pointer]
        self._message = getattr(self.library, f"{name}_message")
        self._message.restype = ctypes.c_char_p

    def _checked(self, code: int) -> None:
        if code:
            raise ArithmeticError(self._message(code).decode())

    def log_delta(self, epsilon, count, order=ORDER, **values):
        value, following = ctypes.c_double(), ctypes.c_double()
        self._checked(self._log_delta(epsilon, count, order, *values.values(), value, following))
        return value.value, following.value

    def epsilon(self, delta, count, order=ORDER, **values):
        value = ctypes.c_double()
        self._checked(self._epsilon(delta, count, order, *values.values(), value))
        return value.value

    def cgf(self, tilt, derivatives=0, **values):
        found = (ctypes.c_double * (derivatives + 1))()
        self._checked(self._cgf(tilt, derivatives, *values.values(), found))
        return list(found)


def package_law(case: str, count: int):
    mechanism, values, direction = CASES[case]
    return symdp.compose(mechanism(**values), count).law(direction)


def places(law) -> list[float]:
    """ε from the bulk to the far tail, in all strips."""
    mean, variance = (float(v) for v in law.cumulants(0.0, 2))
    width = max(math.sqrt(variance), 0.01)
    widths = (-1.0, 0.7, 2.0) if law.count == 1 else (-4.0, -1.0, -0.1, 0.7, 3.0, 6.0)
    return [mean + z * width for z in widths]


def closed_at(case: str, tilt: sp.Expr, order: int, **values) -> list[mpmath.mpf]:
    """K and its derivatives at 100 digits by mpmath's own Taylor coefficients."""
    derivation = derived(case)
    symbols = derivation.mechanism.parameters
    expression = derivation.cgf.expression.subs({symbols[n]: v for n, v in values.items()})
    with mpmath.workdps(160):
        function = sp.lambdify(derivation.cgf.tilt, expression, "mpmath")
        exact = mpmath.mpf(tilt.p) / tilt.q
        coefficients = mpmath.taylor(function, exact, order, singular=True)
        return [c * mpmath.factorial(k) for k, c in enumerate(coefficients)]
