"""δ where no tilt makes ε typical: losses without moments, and more steps that are never safer."""

from __future__ import annotations

import math

import pytest

from symdp import Mechanism, compose, mechanisms
from symdp.balls.mass import enclose_normalizer
from symdp.emit.mass import MassIntegral
from symdp.methods.route import Contour, _cut_law
from symdp.numeric.answer import Answer
from symdp.numeric.contour import on_own_lines
from symdp.numeric.single import log_single

LINE = '["-oo", "oo"]'
LAPLACE = "exp(-Abs(x))/2"
NORMAL = "exp(-x**2/8)/sqrt(8*pi)"
CAUCHY = "1/(pi*(1 + x**2))"
BUMP = "exp(-1/(1 - (x/R)**2)**2)"


def a_pair(p, q, support=LINE, variable="x"):
    head = f'name = "pair"\nvariable = "{variable}"\nsupport = {support}\n'
    return Mechanism.from_toml(f'{head}[pair]\nP = "{p}"\nQ = "{q}"\n')


def noise(density, support, parameters=""):
    head = f'name = "noise"\nvariable = "x"\nsupport = {support}\n{parameters}'
    return Mechanism.from_toml(
        f'{head}[noise]\ndensity = "{density}"\nsensitivity = 1\nnormalize = true\n'
    )


def bump(radius):
    return noise(BUMP, '["-R", "R"]', '[parameters]\nR = "positive"\n')(R=radius)


HEAVY = a_pair(LAPLACE, NORMAL)  # E e^{tL} is infinite for every t > 0


@pytest.mark.slow_cases("2", "5")
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_far_tail_without_moments_is_no_zero(count):
    # Masses of one loss on meshes of 1/25 and 1/50, split between neighbours so that the mean
    # stays, convolved by positive sums in NumPy; the error falls like the square of the mesh.
    truth = {1: 8.21385195e-24, 2: 1.66725999e-23, 5: 4.35748673e-23}[count]
    found = compose(HEAVY, count).delta(300, direction="remove")
    assert math.isclose(found.delta, truth, rel_tol=1e-7)  # the last digit extrapolated
    assert found.lower < truth * (1 + 1e-7)
    assert found.upper > truth * (1 - 1e-7)


def test_one_less_a_complement_of_one_is_no_zero():
    """1 − δ rounds to 1 where δ is 2e-23: all that it says is that δ is less than its error."""
    answer, _ = on_own_lines(compose(HEAVY, 5).law("remove"), 300.0)
    assert answer.kind != "exact"
    assert answer.log_lower == -math.inf
    assert answer.log_upper > math.log(4.3574e-23)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "epsilon", "low", "high"),
    [
        pytest.param(2, 1000, 9.2672195e-6, 9.2672269e-6, marks=pytest.mark.slow),
        (20, 50, 0.0068632862, 0.0068636008),
        pytest.param(20, 20_000, 1.0595641e-6, 1.0595719e-6, marks=pytest.mark.slow),
    ],
)
def test_heavy_steps_have_a_bound_however_far_out(count, epsilon, low, high):
    # Masses of one loss from the closed form of P(|x| < r) at the roots of the loss, rounded down
    # and up to a mesh of 2²² losses, and added by FFT in NumPy.
    pair = a_pair("2/(pi*(1 + x**2)**2)", "exp(-x**2/2)/sqrt(2*pi)")
    found = compose(pair, count).delta(epsilon, direction="remove")
    assert found.kind in {"exact", "bound"}
    assert found.lower < high
    assert found.upper > low
    assert found.upper - found.lower < 2e-3 * found.delta  # the cut-off's own, for 20 steps far out


SAMPLED = '[sampling]\nscheme = "poisson"\nrate = "1/2"\n'
STUDENT = Mechanism.from_toml(
    'name = "sampled"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[pair]\n'
    'P = "2/(pi*(1 + x**2)**2)"\nQ = "1/(3*pi*cosh((x + 1)/3))"\n' + SAMPLED
)
BESIDE_A_PEAK = Mechanism.from_toml(
    'name = "sampled"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[pair]\n'
    'P = "1/(1 + ((x + 2.8)/3.56)**2)**2/3.56 + 0.19*exp(-Abs((x - 1.63)/1.24)**1.5)/1.24"\n'
    'Q = "1/cosh((x + 2.12)/3.33)"\nnormalize = true\n' + SAMPLED
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "remove", "add"),
    [
        (STUDENT, 0.9781980208, 0.9781397043),
        pytest.param(BESIDE_A_PEAK, 0.5580395914, 0.5587949328, marks=pytest.mark.slow),
    ],
    ids=["student", "beside a peak"],
)
def test_rare_enormous_losses_do_not_turn_what_is_typical(step, remove, add):
    # Midpoints of 8·10⁶ stretches of [−400, 400], losses split between neighbours of meshes of
    # 1/5000 and 1/10⁴ and added by FFT in NumPy; what is larger than 40 counts as infinite.  The
    # error falls like the square of the mesh, and is extrapolated.
    for direction, truth in (("remove", remove), ("add", add)):
        law = compose(step(), 40).law(direction)
        found = Contour().log_delta(law, 0.061)
        assert found.kind == "exact"
        assert math.isclose(math.exp(found.log_delta), truth, rel_tol=1e-10)  # the last digit
        assert found.log_upper - found.log_lower < 1e-8
        (part,) = (part for part, _ in law.parts)
        assert max(nodes.loss.size for nodes in part._sets.values()) < 1 << 18


@pytest.mark.quick_cases("laplace")
@pytest.mark.parametrize(
    "pair",
    [HEAVY, a_pair(CAUCHY, NORMAL), a_pair("exp(-x)", "2*x*exp(-x**2)", '[0, "oo"]')],
    ids=["laplace", "cauchy", "one-sided"],
)
def test_a_law_that_is_cut_exceeds_the_whole_by_no_more_than_it_says(pair):
    law = compose(pair, 1).law("remove")
    ((part, _),) = law.parts
    for fall, top in ((8.0, 64.0), (20.0, 4.0), (20.0, 64.0)):
        cut = _cut_law(law, fall, top)
        assert cut is not None
        assert cut.law.domain[1] > 0
        for epsilon in (1.0, 10.0):
            whole = math.exp(log_single(part, epsilon))
            own = log_single(cut.law.parts[0][0], epsilon)
            more = math.exp(own) + cut.law.mass_at_infinity - whole
            rounding = 1e-12 * whole  # of two quadratures
            assert -rounding <= more <= math.exp(cut.log_excess(epsilon)) + rounding


def ends(answer: Answer):
    return (
        -math.inf if answer.log_lower is None else answer.log_lower,
        math.inf if answer.log_upper is None else answer.log_upper,
    )


def never_falls(mechanism, epsilons, direction, counts):
    """Check that δ does not fall as n grows, the first output being a function of all."""
    laws = [compose(mechanism, count).law(direction) for count in counts]
    for epsilon in epsilons:
        least = -math.inf
        for count, law in zip(counts, laws, strict=True):
            low, high = ends(Contour().log_delta(law, epsilon))
            assert high >= least, f"δ({epsilon}) of {count} steps is below that of fewer"
            least = max(least, low)


QUICK = {
    "response": (mechanisms.randomized_response(epsilon_0=1), (0.5, 0.999, 1.5, 20.0)),
    "laplace": (mechanisms.laplace(b=2), (0.1, 0.499, 3.0, 49.0)),
    "sampled": (mechanisms.laplace(b=2).subsample("poisson", "1/10"), (0.01, 0.06, 3.0)),
    "normal": (mechanisms.gaussian(sigma=2), (0.5, 30.0)),
    "rare": (mechanisms.gaussian(sigma=1).subsample("poisson", "1/100"), (0.5, 30.0)),
    "integers": (mechanisms.discrete_laplace(b=2), (0.1, 3.0, 49.0)),
}
SLOW = {
    "laplace on normal": (HEAVY, (0.5, 30.0, 300.0, 3000.0)),
    "cauchy on normal": (a_pair(CAUCHY, NORMAL), (0.5, 30.0, 3000.0)),
    "cauchy on laplace": (a_pair(CAUCHY, LAPLACE), (0.5, 30.0, 300.0)),
    "weibull": (a_pair("exp(-x)", "2*x*exp(-x**2)", '[0, "oo"]'), (0.5, 30.0, 300.0)),
    "beta": (a_pair("140*x**3*(1 - x)**3", "105*x**2*(1 - x)**4", "[0, 1]"), (0.5, 10.0, 100.0)),
    "bump": (None, (0.5, 5.0, 100.0)),  # built where it is asked: its mass takes seconds
    "triangle": (noise("1 - Abs(x)/4", "[-4, 4]"), (0.5, 5.0, 100.0)),
    "integers": (
        a_pair("(1/2)**(k + 1)", "exp(-1)/factorial(k)", '"naturals"', "k"),
        (0.5, 30.0, 300.0),
    ),
}


@pytest.mark.slow_cases("rare-remove", "sampled-remove")
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", QUICK)
def test_more_steps_are_never_safer(name, direction):
    never_falls(*QUICK[name], direction, (1, 5, 100))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "direction"), [(name, ("remove", "add")[k % 2]) for k, name in enumerate(SLOW)]
)
def test_more_steps_are_never_safer_far_out(name, direction):
    mechanism, epsilons = SLOW[name]
    never_falls(mechanism or bump(20), epsilons, direction, (1, 2, 5, 20, 100))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("radius", "count", "epsilon", "truth"),
    [
        # As above, from meshes of 1/250 and 1/500.
        (20, 4, 1, 0.00840213007),
        # From meshes of 1/2500 and 1/5000.
        (1000, 100, 1, 1.8525e-20),
    ],
)
def test_a_density_that_is_flat_at_its_ends(radius, count, epsilon, truth):
    """Its losses have no moments: near an end Q falls faster than any power of P."""
    found = compose(bump(radius), count).delta(epsilon)
    assert math.isclose(found.delta, truth, rel_tol=5e-5 if truth < 1e-9 else 1e-9)
    assert found.kind == "exact"


@pytest.mark.slow
@pytest.mark.parametrize("radius", [20, 300_000, 1_000_000])
def test_a_density_is_normalised_at_any_scale(radius):
    """∫ exp(−1/(1 − u²)²) du = 0.340294238275125929 over [−1, 1] (mpmath's tanh-sinh rule)."""
    (mass,) = bump(radius).pair().components[1].atoms(MassIntegral)
    ball = enclose_normalizer(mass)
    assert ball is not None
    assert math.isclose(float(ball.mid()), 0.340294238275125928 * radius, rel_tol=1e-11)


def test_next_to_the_largest_loss_of_many_steps_both_ends_are_finite():
    """At a tilt of 10⁶ doubles know log δ to 1e-8; the value is from losses told to 28 digits."""
    step = mechanisms.gaussian(sigma=2).under("zero_out").subsample("poisson", "1/20")
    answer = compose(step, 50).delta(2.562175750732422, direction="add")
    assert answer.log_lower < -4745.51673636143 < answer.log_upper < answer.log_lower + 1e-7
