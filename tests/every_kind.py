"""Mechanisms on which accountants with a mesh are tried: one of every kind of loss."""

from __future__ import annotations

from symdp import mechanisms

EVERY_KIND = {
    "poisson gaussian": mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"),
    "with replacement": mechanisms.gaussian(sigma=4).subsample("with_replacement", "1/100", 3),
    "gaussian": mechanisms.gaussian(sigma=20),
    "laplace": mechanisms.laplace(b=20),
    "poisson laplace": mechanisms.laplace(b=2).subsample("poisson", "1/10"),
    "logistic": mechanisms.logistic(s=10),
    "student": mechanisms.student_t(nu=3, s=5),
    "discrete laplace": mechanisms.discrete_laplace(b=20),
    "randomized response": mechanisms.randomized_response(epsilon_0="1/10"),
}
