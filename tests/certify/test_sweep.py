"""Sums over nodes in doubles: within their error of sums in balls, and nothing loud left out."""

import itertools
import math

import pytest
from flint import acb, arb, ctx

from symdp.certify import sweep
from symdp.certify.mollifier import LARGEST, Mollifier
from symdp.certify.nodes import Nodes
from symdp.certify.sweep import BITS, ROWS, Sweep
from symdp.errors import AccuracyError

SPACING, TILT, EPSILON = arb(3) / 16, arb(5) / 4, arb(11) / 16
LENGTHS = (8, 4, 2)
FIRST = ROWS * LENGTHS[0]
LAST = 8 * FIRST
MOLLIFIER = Mollifier(5.5 * FIRST * 3 / 16)
LAWS = {
    "three losses": ([(((3, 7, 6), (0.0, 1.0, 1.618)), 12)]),
    "two kinds": ([(((5, 11), (0.0, 1.4142)), 9), (((1, 1, 2), (0.3, -0.7, 0.1)), 6)]),
    "one step of a kind": ([(((1, 15), (2.5, 0.0)), 1), (((8, 8), (0.0, 1.7320)), 20)]),
}


def _nodes(masses, losses, error=0.0):
    weights = tuple(arb(m) / 16 for m in masses)
    return Nodes(weights, tuple(arb(loss) for loss in losses), arb(error), 1e9)


def _sweep(likely, whole, counts, tolerance=math.inf):
    return Sweep(
        likely,
        whole,
        counts,
        tilt=TILT,
        epsilon=EPSILON,
        spacing=SPACING,
        lengths=LENGTHS,
        tolerance=tolerance,
        mollifier=MOLLIFIER,
    )


def _transform(laws, y):
    """Re-done in balls: the weighted term, its modulus, Re Φ in the window, and |Φ|."""
    z, value = acb(TILT, y), acb(0, -EPSILON * y).exp()
    for nodes, count in laws:
        value *= nodes.at(y) ** count
    cut, window = MOLLIFIER.weights_at(y)
    term = cut * value / (z * (1 + z))
    return term.real, abs(term), value.real * window, abs(value)


@pytest.mark.parametrize(("log_level", "column"), [(-60.0, 1), (-14.0, 3), (-9.0, 1)])
@pytest.mark.parametrize("name", LAWS)
def test_what_is_left_out_is_small_and_the_rest_is_within_its_error(name, log_level, column):
    with ctx.workprec(BITS):
        laws = [(_nodes(*law), count) for law, count in LAWS[name]]
        whole, counts = zip(*laws, strict=True)
        far = _sweep(whole, whole, counts)
        chunks = list(far.chunks(column, LAST, log_level))
        assert chunks[0].first == column * FIRST
        assert chunks[-1].last >= LAST
        for chunk, following in itertools.pairwise(chunks):
            assert chunk.last == following.first <= 2 * chunk.first
        for chunk in chunks:
            level = math.exp(log_level) * chunk.first
            total, mass, left_out, unweighted = arb(0), arb(0), arb(0), arb(0)
            for node in range(chunk.first + 1, chunk.last + 1):
                term, modulus, own, size = _transform(laws, node * SPACING)
                total += term
                mass += own
                if size < level:  # it may have been left out
                    left_out += modulus
                    unweighted += LARGEST * size
            assert abs(total - chunk.total) <= left_out + chunk.error
            assert mass <= chunk.mass + unweighted
            assert chunk.mass <= mass + unweighted + 1e-8 * (chunk.last - chunk.first)
            assert chunk.error < 1e-12


def test_rare_losses_that_places_leave_out_are_summed():
    with ctx.workprec(BITS):
        whole = _nodes((3, 7, 5.75, 0.25), (0.0, 1.0, 1.618, 40.3))
        likely = _nodes((3, 7, 5.75), (0.0, 1.0, 1.618), 0.25 / 16)
        sums = [
            next(_sweep([law], [whole], [8]).chunks(1, LAST, -100.0)) for law in (likely, whole)
        ]
        assert sums[0] == sums[1]
        assert sums[0].total != 0.0


def test_nodes_summed_a_few_at_a_time_add_up_to_the_same(monkeypatch):
    with ctx.workprec(BITS):
        laws = [_nodes(*law) for law, _ in LAWS["two kinds"]]
        counts = [count for _, count in LAWS["two kinds"]]

        def chunk():
            return next(_sweep(laws, laws, counts).chunks(1, LAST, -60.0))

        whole = chunk()
        monkeypatch.setattr(sweep, "_NODES_AT_ONCE", 6)
        monkeypatch.setattr(sweep, "_INTERVALS_AT_ONCE", 5)
        few = chunk()
    assert abs(few.total - whole.total) <= 1e-4 * whole.error
    assert few.error == pytest.approx(whole.error, rel=1e-12)
    assert few.mass == pytest.approx(whole.mass, rel=1e-9)


def test_nodes_that_doubles_do_not_know_well_enough_are_named():
    with ctx.workprec(BITS):
        law, count = _nodes((3, 7, 6), (0.0, 1.0, 1.618)), 12
        whole = next(_sweep([law], [law], [count]).chunks(1, LAST, -60.0))
        tolerance = FIRST * whole.error / 50
        sure = next(_sweep([law], [law], [count], tolerance).chunks(1, LAST, -60.0))
        assert 0 < len(sure.unsure) < 200
        assert sure.error < whole.error
        named, mass = arb(0), arb(0)
        for node in sure.unsure:
            term, _, own, _ = _transform([(law, count)], node * SPACING)
            named += term
            mass += own
        assert abs(sure.total + named - whole.total) <= whole.error
        assert abs(sure.mass + mass - whole.mass) < 1e-8
    assert not whole.unsure


def test_losses_that_are_not_known_well_enough_are_refused():
    nodes = Nodes((arb(0.5), arb(0.5)), (arb(0), arb(1, 1e-12)), arb(0), 1e9)
    with pytest.raises(AccuracyError, match="too high"):
        list(_sweep([nodes], [nodes], [8]).chunks(1, LAST, -9.0))
