"""Check a certificate of delta(epsilon). Integers decide; nothing but Python is needed.

    python check_certificate.py FILE.json

A certificate names two laws P and Q of each step's output, the numbers of steps, an epsilon and two
ends of delta. With the loss L = log(p(X)/q(X)), X drawn from P, and S the sum of all losses,

    delta(epsilon) = E g(S - epsilon),   g(s) = max(0, 1 - exp(-s)),   M(z) = E exp(zL).

What is no claim is a witness: it says where to look, and none of it is believed. The parts of the
proof stand as comments where they are computed: numbers, series, formulas, one step, all steps.
"""

# fmt: off
import ast
import json
import re
import sys
from fractions import Fraction
from functools import lru_cache
from math import isqrt

MOST_BYTES, MOST_TEXT, MOST_DIGITS = 200000, 4000, 300  # of a file, a formula, a number
MOST_BITS, MOST_COUNT = 2048, 10**12  # of numbers, of steps
MOST_WORK = 4 * 10**6  # nodes times terms
GUARD, PARTS = 64, 4  # bits carried inside a function beyond its result's; listed parts of a series

class Refused(Exception):
    """The first thing that is not proved."""

class Malformed(Refused):
    """What is no certificate at all."""

def need(proved, what, error=Refused):
    if not proved:
        raise error(what)

# ---- Numbers: intervals of integers in units of 2^-P. Every operation rounds outwards.
def set_units(bits, reach):
    global P, W, ONE, LN2, HALF_TURN, PI, REACH
    P, W, ONE, REACH, unit = bits, bits + GUARD, 1 << bits, reach, 1 << (bits + GUARD + 16)

    def series(inverse, sign):  # 1/inverse + sign/(3 inverse^3) + ...: a term loses < 3 units
        result, power, odd, factor = 0, unit // inverse, 1, 1
        while power:
            result, power = result + factor * (power // odd), power // inverse**2
            odd, factor = odd + 2, sign * factor
        return result

    LN2 = 2 * series(3, 1) >> 16  # artanh, and Machin's arctan: to 2 units of 2^-W
    HALF_TURN = 4 * (4 * series(5, -1) - series(239, -1)) >> 16
    PI = Real((HALF_TURN >> GUARD) - 1, (HALF_TURN >> GUARD) + 2)
    for cached in (exp_of, log_of, formula):
        cached.cache_clear()

def powers(r):
    """Sum r^i/i! over i = 0, 1, 2, 3 mod 4; for 0 <= r < 2^-5 < 2^8 terms, which lose < 3 units."""
    sums, term, i = [0, 0, 0, 0], 1 << W, 0
    while term:
        sums[i % 4], i = sums[i % 4] + term, i + 1
        term = (term * r >> W) // i
    return sums

@lru_cache(maxsize=10000)
def exp_of(x):
    """Return integers below and above 2^P exp(x/2^P)."""
    if x < -(P + 2) * ONE:  # exp(x) < 2^x
        return 0, 1
    need(x < ONE << 16, "a number is too large")
    k, r = divmod(x << GUARD, LN2)  # x = k log 2 + r, r to 2|k| + 1 < 2^19 units
    result, shift = sum(powers(r >> 8)), GUARD - k
    for _ in range(8):  # squaring makes the error of a number below 2 at most fourfold
        result = result * result >> W
    low, high = result - (1 << 32), result + (1 << 32)  # (2^11 + 2^10) 4^8 < 2^32
    if shift <= 0:
        return low << -shift, high << -shift
    return max(0, low >> shift), (high >> shift) + 1

@lru_cache(maxsize=10000)
def log_of(x):
    """Return integers below and above 2^P log(x/2^P)."""
    need(x > 0, "a logarithm of what may not be positive")
    e = x.bit_length() - 1
    m = x << (W - e) if W >= e else x >> (e - W)  # in [1, 2), to a unit
    for _ in range(4):
        m = isqrt(m << W)  # in [1, 1.05): its logarithm is a sixteenth of that of the first
    y = ((m - (1 << W)) << W) // (m + (1 << W))
    square, result, power, odd = y * y >> W, 0, y, 1
    while power:  # y < 2^-5: fewer than 2^8 terms, of which every one loses < 3 units
        result, power, odd = result + power // odd, power * square >> W, odd + 2
    result = 32 * result + (e - P) * LN2  # to 32 (2^10 + 8) + 2|e - P| < 2^32 units
    return (result - (1 << 32)) >> GUARD, ((result + (1 << 32)) >> GUARD) + 1

def turn(angle):
    """Enclose exp(i angle): a complex number is the integers of a centre, and a radius."""
    middle = (angle.lo + angle.hi) // 2
    turns = (middle << GUARD) // (2 * HALF_TURN)
    need(abs(turns) < 1 << 40, "an angle is too large")
    a, b, c, d = powers(((middle << GUARD) - turns * 2 * HALF_TURN) >> 8)  # to 2^36 units
    re, im = a - c, b - d
    for _ in range(8):  # makes an error at most fourfold: 2^37 4^8 < 2^GUARD
        re, im = (re * re - im * im) >> W, 2 * re * im >> W
    return re >> GUARD, im >> GUARD, (angle.hi - angle.lo) // 2 + 4

def times(a, b):
    re, im = (a[0] * b[0] - a[1] * b[1]) >> P, (a[0] * b[1] + a[1] * b[0]) >> P
    size, other = isqrt(a[0] ** 2 + a[1] ** 2) + 1, isqrt(b[0] ** 2 + b[1] ** 2) + 1
    return re, im, (((size + a[2]) * b[2] + other * a[2]) >> P) + 3

def raised(a, n):
    result = (ONE, 0, 0)
    for bit in bin(n)[2:]:
        result = times(result, result)
        result = times(result, a) if bit == "1" else result
    return result

class Real:
    """All numbers between lo/2^P and hi/2^P."""
    __slots__ = ("hi", "lo")
    def __init__(self, lo, hi): self.lo, self.hi = lo, hi
    def __neg__(self): return Real(-self.hi, -self.lo)
    def exp(self): return Real(exp_of(self.lo)[0], exp_of(self.hi)[1])
    def log(self): return Real(log_of(self.lo)[0], log_of(self.hi)[1])
    def erf(self): return Real(erf_of(self.lo).lo, erf_of(self.hi).hi)
    def size(self): return max(-self.lo, self.hi)
    def abs(self): return self if self.lo >= 0 else -self if self.hi <= 0 else Real(0, self.size())
    def __add__(self, other):
        other = real(other)
        return NotImplemented if other is None else Real(self.lo + other.lo, self.hi + other.hi)
    def __mul__(self, other):
        other = real(other)
        return NotImplemented if other is None else dot([self], [other])
    def inverse(self):
        need(self.lo > 0 or self.hi < 0, "a division by what may be 0")
        return Real(ONE**2 // self.hi, -(-(ONE**2) // self.lo))
    __radd__, __rmul__ = __add__, __mul__

def real(x):
    """Return a rational number as the interval around it."""
    if isinstance(x, (Real, Jet)):
        return x if isinstance(x, Real) else None
    n, d = x.numerator << P, x.denominator
    return Real(n // d, -(-n // d))

def dot(us, vs):
    low = high = 0
    for u, v in zip(us, vs):
        ends = (u.lo * v.lo, u.lo * v.hi, u.hi * v.lo, u.hi * v.hi)
        low, high = low + min(ends), high + max(ends)
    return Real(low >> P, -(-high >> P))

def point(n): return Real(n, n)
def top(u): return Real(u.hi, u.hi)
def slope_of_erf(): return (PI.log() * Fraction(-1, 2)).exp() * 2  # 2/sqrt(pi)

def erf_of(x):
    """Enclose erf: 2/sqrt(pi) exp(-x^2) (x + 2x^3/3 + 4x^5/15 + ...), terms of one sign."""
    if x < 0:
        return -erf_of(-x)
    square, result, term, i = point(x) * point(x), point(x), point(x), 3
    outside = (-square).exp()
    if outside.hi <= 2:  # 1 - erf(x) < exp(-x^2)
        return Real(ONE - 2, ONE)
    while term.hi > 2 or 4 * square.hi > i * ONE:  # then terms fall by halves: the rest is < term
        term = term * square * Fraction(2, i)
        result, i = result + term, i + 2
    return (result + Real(0, term.hi)) * outside * slope_of_erf()

class Jet:
    """A power series u_0 + u_1 t + ...: its first parts, and a bound of the sum of |the others|.

    A panel is |t| <= 1/REACH, and the sizes |u_k| add up to a bound of |u| for complex |t| <= 1.
    """
    def __init__(self, parts, tail=0): self.parts, self.tail = parts, tail
    def __neg__(self): return Jet([-u for u in self.parts], self.tail)
    def rise(self): return sum(u.size() for u in self.parts[1:]) + self.tail
    def spread(self, weigh=lambda k: 1):
        """Bound |u - u_0| on the panel; with k as a weight, |t du/dt| at its ends."""
        sizes = [u.size() for u in self.parts] + [self.tail]
        return int(sum(Fraction(weigh(k) * sizes[k], REACH**k) for k in range(1, len(sizes)))) + 1
    def __add__(self, other):
        if not isinstance(other, Jet):
            return Jet([self.parts[0] + other, *self.parts[1:]], self.tail)
        return Jet([u + v for u, v in zip(self.parts, other.parts)], self.tail + other.tail)
    def __mul__(self, other):
        a, s = self.parts, self.tail
        if not isinstance(other, Jet):
            return Jet([u * other for u in a], (s * real(other).size() >> P) + 1)
        b, t, beyond = other.parts, other.tail, 0
        tail = s * (other.rise() + b[0].size()) + t * sum(u.size() for u in a)
        for j in range(1, PARTS):  # products of degrees from PARTS on
            beyond += b[PARTS - j].size()
            tail += a[j].size() * beyond
        return Jet([dot(a[: k + 1], b[k::-1]) for k in range(PARTS)], (tail >> P) + 1)
    def composed(self, name, parts):
        """Return exp, inverse or log. Its parts are no larger than those of u_0 - |u_1| t - ...
        (of exp: +), which have one sign from k = 1 on and add up to the function's value at 1."""
        up, first = (1, self.parts[0].hi) if name == "exp" else (-1, self.parts[0].abs().lo)
        at_one = first + up * self.rise()
        need(name == "exp" or at_one > 0, "a panel is too wide")
        known = parts([point(first), *(point(up * u.size()) for u in self.parts[1:])])
        rest = getattr(point(at_one), name)() + -sum(known, point(0))
        return Jet(parts(self.parts), rest.size())
    def inverse(self): return self.composed("inverse", inverse_parts)
    def exp(self): return self.composed("exp", lambda u: chained(u, None, u[0].exp()))
    def log(self): return self.composed("log", lambda u: chained(u, inverse_parts(u), u[0].log()))
    def erf(self):  # its slope is at most 2/sqrt(pi) exp(-u_0^2 + 2|u_0| rise + rise^2)
        slope = (-(self * self)).exp() * slope_of_erf()
        rise, first = Real(0, self.rise()), self.parts[0]
        most = rise * (rise * (rise + first.abs() * 2) + -(first * first)).exp() * 2
        return Jet(chained(self.parts, slope.parts, first.erf()), most.hi)
    def abs(self):
        need(self.parts[0].abs().lo >= self.spread(), "a kink lies inside a panel")
        return self if self.parts[0].lo > 0 else -self
    __radd__, __rmul__ = __add__, __mul__

def inverse_parts(u):  # u v = 1
    v = [u[0].inverse()]
    for k in range(1, PARTS):
        v.append(-(v[0] * dot(u[1 : k + 1], v[::-1])))
    return v

def chained(u, slope, first):  # v' = slope u'; without a slope, v' = v u'
    weighted, v = [w * k for k, w in enumerate(u)], [first]
    for k in range(1, PARTS):
        v.append(dot(weighted[1 : k + 1], (slope or v)[k - 1 :: -1]) * Fraction(1, k))
    return v

# ---- Formulas. Python's own parser reads them; the tree is walked here, and nothing is ever run.
NUMBER = re.compile(r"[-+]?[0-9]+(/[0-9]+|(\.[0-9]+)?([eE][-+]?[0-9]{1,4})?)")
OTHERS = {  # functions in terms of exp, log, erf and Abs
    "sqrt": "x**(1/2)", "erfc": "1 - erf(x)", "sinh": "(exp(x) - exp(-x))/2", "abs": "Abs(x)",
    "cosh": "(exp(x) + exp(-x))/2", "tanh": "1 - 2/(exp(2*x) + 1)", "sech": "2/(exp(x) + exp(-x))",
    "Max": "(x + y + Abs(x - y))/2", "Min": "(x + y - Abs(x - y))/2"}

def number(text, what):
    """Read a decimal or a ratio exactly."""
    fine = isinstance(text, str) and len(text) <= MOST_DIGITS and NUMBER.fullmatch(text)
    need(fine and not re.fullmatch(r".*/0+", text), f"{what}: no exact number", Malformed)
    return Fraction(text)

@lru_cache(maxsize=1000)
def formula(text):
    need(isinstance(text, str) and len(text) <= MOST_TEXT, "a formula is missing or too long")
    fine = re.fullmatch(r"[A-Za-z0-9_ .+*/(),-]+", text) and not re.search(r"([-+(] *){40}", text)
    need(fine, "a formula: a sign that is not allowed, or nested too deeply")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, MemoryError, ValueError):
        raise Refused("a formula cannot be read") from None
    for node in ast.walk(tree):
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        node.known = None if names & {"x", "y"} else {}  # values of what is free of x
        if isinstance(node, ast.Constant):  # its text, of which Python has made a float
            node.value = number(text.strip()[node.col_offset : node.end_col_offset], "a formula")
    return tree

def once(evaluate):
    def evaluated(tree, **names):
        if tree.known is None:
            return evaluate(tree, **names)
        if evaluate not in tree.known:
            tree.known[evaluate] = evaluate(tree, **names)
        return tree.known[evaluate]
    return evaluated

def inverted(u): return 1 / u if isinstance(u, Fraction) and u != 0 else lifted(u).inverse()
def lifted(u): return real(u) if isinstance(u, Fraction) else u
def size(u): return max(u.numerator.bit_length(), u.denominator.bit_length())

@once
def value(tree, **names):
    """Evaluate a formula: rational numbers stay exact as long as they are short."""
    if isinstance(tree, (ast.Constant, ast.Name)):
        known = names.get(getattr(tree, "id", ""), PI if getattr(tree, "id", "") == "pi" else None)
        need(known is not None or isinstance(tree, ast.Constant), "a formula: an unknown name")
        return tree.value if known is None else known
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, (ast.USub, ast.UAdd)):
        return value(tree.operand, **names) * (-1 if isinstance(tree.op, ast.USub) else 1)
    if isinstance(tree, ast.Call):
        name, inner = getattr(tree.func, "id", ""), [value(t, **names) for t in tree.args]
        need(name in ("exp", "log", "erf", "Abs", *OTHERS), f"a formula: {name[:20]} is unknown")
        need(len(inner) == 1 + (name in ("Max", "Min")) and not tree.keywords, f"{name}: arguments")
        if name in OTHERS:
            return value(formula(OTHERS[name]), **dict(zip("xy", inner)))
        log = name == "log" and log_value(tree.args[0], **names)
        return log or getattr(lifted(inner[0]), name.lower())()
    op = type(getattr(tree, "op", None))
    need(op in (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow), "a formula: what is not allowed")
    a, b, result = value(tree.left, **names), value(tree.right, **names), Fraction(1)
    if op is ast.Pow:
        if not isinstance(b, Fraction) or b.denominator > 1 or abs(b) > 64:
            return lifted(b * log_value(tree.left, **names)).exp()
        for bit in bin(abs(int(b)))[2:]:
            result = result * result * a if bit == "1" else result * result
    else:
        b = inverted(b) if op is ast.Div else -b if op is ast.Sub else b
        result = a * b if op in (ast.Mult, ast.Div) else a + b
    result = inverted(result) if op is ast.Pow and b < 0 else result
    return real(result) if isinstance(result, Fraction) and size(result) > 2000 else result

@once
def log_value(tree, **names):
    """Evaluate the logarithm of a formula, so that a density may be small beyond all units."""
    op = type(getattr(tree, "op", None))
    try:
        if op in (ast.Mult, ast.Div, ast.Add):
            u, v = log_value(tree.left, **names), log_value(tree.right, **names)
            return log_sum([u, v]) if op is ast.Add else u + (v if op is ast.Mult else -v)
        if op is ast.Pow:
            return value(tree.right, **names) * log_value(tree.left, **names)
        if isinstance(tree, ast.Call) and tree.func.id == "exp":
            return value(tree.args[0], **names)
    except Refused:  # a part may be 0, or negative
        pass
    return lifted(value(tree, **names)).log()

def log_sum(us):
    """Return log(exp(u) + exp(v) + ...), the largest term taken out."""
    most = max(us, key=lambda u: (u.parts[0] if isinstance(u, Jet) else real(u)).lo)
    return most + sum((lifted(u + -most).exp() for u in us), Fraction(0)).log()

# ---- One step.
def listed(told, key, length=None):
    found = told.get(key)
    fine = isinstance(found, list) and length in (None, len(found))
    need(fine, f"{key}: no list, or not as many as needed", Malformed)
    return found

def whole(told, key, least, most):
    found = number(told.get(key), key)
    fine = found.denominator == 1 and least <= found <= most
    need(fine, f"{key}: not from {least} to {most}", Malformed)
    return int(found)

class Step:
    """Laws P = sum p_i f_i and Q = sum q_i f_i of a step, and the nodes of its integrals."""
    def __init__(self, told, hint, swapped):
        self.count = whole(told, "count", 1, MOST_COUNT)
        self.scale = number(hint.get("scale"), "scale")
        laws = listed(told, "laws")
        p, q = ([number(w, "a weight") for w in listed(told, key, len(laws))] for key in "pq")
        need(min(p + q) >= 0 and sum(p) == sum(q) == 1, "weights are not >= 0 with sum 1")
        self.weights, self.laws = (q, p) if swapped else (p, q), [formula(text) for text in laws]
        ends = zip(listed(told, "support", 2), ("-oo", "oo"))
        self.low, self.high = (None if e == i else number(e, "an end") for e, i in ends)
        rule = [(number(t, "a node"), number(w, "a weight")) for t, w in listed(hint, "rule")]
        # Nodes and positive weights on [-1, 1] that integrate degrees below 2N, but for an error.
        need(all(abs(t) <= 1 and w > 0 for t, w in rule), "rule: a node outside, or a weight <= 0")
        self.order, terms, gaps = 2 * len(rule), [real(w) for _, w in rule], []
        for m in range(self.order):
            gaps.append(sum(terms, real(Fraction(-2, m + 1) if m % 2 == 0 else Fraction(0))).size())
            terms = [v * t for v, (t, _) in zip(terms, rule)]
        self.gap, self.nodes, self.panels = max(gaps, default=0), [], self.pieces(hint, "panels")
        for middle, radius, _, _ in self.panels:
            for t, w in rule:
                self.nodes.append((real(w * radius), *self.logs(real(middle + radius * t))))
        self.cells, self.layers = self.pieces(hint, "cells"), listed(hint, "layers")

    def pieces(self, hint, key):
        """Return intervals between neighbours of rising lists, each list above the last one."""
        found, last = [], self.low
        for group in listed(hint, key):
            xs = [number(x, key) for x in group]
            need(len(xs) > 1 and all(x < y for x, y in zip(xs, xs[1:])), f"{key} that do not rise")
            need(last is None or last <= xs[0], f"{key} that overlap, or lie outside the support")
            need(self.high is None or xs[-1] <= self.high, f"{key} outside the support")
            last = xs[-1]
            for x, y in zip(xs, xs[1:]):
                middle, radius = (x + y) / 2, (y - x) / 2
                parts = [real(middle), real(radius * REACH), *[point(0)] * (PARTS - 2)]
                found.append((middle, radius, *self.logs(Jet(parts))))
        return found

    def logs(self, x):
        """Return log p and the loss."""
        logs = [x * 0 + log_value(law, x=x) for law in self.laws]
        p, q = (log_sum([real(w).log() + u for w, u in zip(ws, logs) if w]) for ws in self.weights)
        return p, p + -q

    def measure(self, tilt, height):
        """Return W_j and an error: |e^-scale M(tilt + iy) - sum W_j e^(iy loss_j)|, |y| <= height.

        The integrand is exp of a series u in t; its coefficients are below those of exp(|u_0| +
        |u_1| t + ...). On the panel, |t| <= 1/REACH, its terms from degree 2N on add up to at most
        that at t = 1 over REACH^2N. N nodes integrate the others, but for their moments' error.
        """
        error, share = Fraction(0), 5 * ONE // REACH**self.order + self.gap + 6
        for _, radius, log_p, loss in self.panels:
            u = log_p + loss * tilt
            rise = Real(0, u.rise() + (height * Real(0, loss.rise())).hi)
            error += (u.parts[0] + -self.scale + rise).exp().hi * share * radius / ONE
        return [w * (u + v * tilt + -self.scale).exp() for w, u, v in self.nodes], int(error) + 1

    def total(self, tilt):
        """Enclose M at a real point, times e^-scale."""
        weights, error = self.measure(tilt, point(0))
        return sum(weights, Real(-error, error))

    def density(self, cell, tilt):
        """Return a lower bound of p e^(tilt loss - scale)/|loss'| on a cell."""
        u = cell[2] + cell[3] * tilt
        least = exp_of(u.parts[0].lo - u.spread() - real(self.scale).hi)[0]
        return least * cell[1] / cell[3].spread(lambda k: k)

    def gain(self, tilt, height):
        """Return a lower bound of e^-scale (M(tilt) - |M(tilt + iy)|) for all y >= height: fact 2.

        A layer (i, j, c) says that p e^(tilt loss - scale) >= c |loss'| on the cells i to j - 1,
        beside other layers. The loss is continuous there: its law has a part of density c on an
        interval as wide as the losses at the two ends differ. Of that part the transform is at most
        c w |sin(v)/v|, v = y w/2; and |sin(u)/u| <= 1 - v^2/6 + v^4/120 for all u >= v, v <= 2.
        """
        result, used = point(0), [0] * len(self.cells)
        for one in self.layers:
            i, j = (whole({"layer": k}, "layer", 0, len(used)) for k in one[:2])
            c, cells = number(one[2], "layer"), self.cells[i:j]
            need(i < j and c >= 0, "a layer that is empty")
            joined = all(a[0] + a[1] == b[0] - b[1] for a, b in zip(cells, cells[1:]))
            need(joined, "a layer with a gap")
            x, y = cells[0][0] - cells[0][1], cells[-1][0] + cells[-1][1]
            width = point((self.logs(real(y))[1] + -self.logs(real(x))[1]).abs().lo)
            v = point((height * width).lo // 2)
            sinc = 1 + v * v * (v * v * Fraction(1, 20) + -1) * Fraction(1, 6)
            sinc = sinc if v.hi <= 2 * ONE else v.inverse()
            result, used[i:j] = result + c * width * (1 + -sinc), [d + c for d in used[i:j]]
        for c, cell in zip(used, self.cells):
            need(c <= self.density(cell, tilt), "a layer is higher than the density")
        return result

# ---- All steps.
def enclose(told, hint, swapped, epsilon):
    """Return a unit and two Reals: in these units, delta is from the first to the second."""
    hints = listed(hint, "steps", len(listed(told, "steps")))
    steps = [Step(one, own, swapped) for one, own in zip(told["steps"], hints)]
    tilt, period = number(hint.get("tilt"), "tilt"), number(hint.get("period"), "period")
    terms = whole(hint, "terms", 1, MOST_WORK // max(1, sum(len(step.nodes) for step in steps)))
    need(tilt > 0 and period > 0 and steps, "tilt and period must be positive, and some steps told")
    # Outside the panels. A law has mass 1: what it has not on the panels lies elsewhere, where the
    # loss counts as infinite above and is left out below. Nothing of the tails has to be known.
    outside = point(0)
    for step in steps:
        unit = real(step.scale).exp()
        missing = 1 + -(step.total(Fraction(0)) * unit)
        need(missing.hi >= 0, "P has a mass above 1")
        need((step.total(Fraction(-1)) * unit).lo <= ONE, "Q has a mass above 1")
        outside = outside + Real(0, missing.hi) * step.count
    # Fact 1. By Poisson's formula for s -> e^(-as) E g(S - epsilon + s), a > 0, whose transform is
    # M(z) e^(-epsilon z)/(z (z + 1)) on Re z = a: with z_k = a + 2 pi i k/period,
    #   1/period sum_k M(z_k) e^(-epsilon z_k)/(z_k (z_k + 1))
    #     = sum_m e^(-a m period) E g(S - epsilon + m period).
    # No term on the right is negative, and the one of m = 0 is delta: the sum is an upper bound.
    first, bound, lines = PI * (2 / period), point(ONE), []
    for step in steps:
        weights, error = step.measure(tilt, first * terms)
        rest = top(sum(weights, point(error)) + -step.gain(tilt, first * (terms + 1)))
        bound = bound * (rest.log() * step.count).exp()
        values = [((w.lo + w.hi) // 2, 0, (w.hi - w.lo) // 2 + 1) for w in weights]
        lines.append((step.count, error, values, [turn(first * loss) for _, _, loss in step.nodes]))
    result, shift, place = point(0), turn(first * -epsilon), (ONE, 0, 0)
    for k in range(terms + 1):
        y = first * k
        re, im = tilt * (tilt + 1) + -(y * y), y * (2 * tilt + 1)
        square = (re * re + im * im).inverse()
        re, im = re * square, -(im * square)
        term = times(place, (re.lo, im.lo, re.hi - re.lo + im.hi - im.lo))
        for count, error, values, turns in lines:
            a, b, radius = map(sum, zip(*values))
            term = times(term, raised((a, b, radius + error), count))
            values[:] = map(times, values, turns)
        result = result + Real(term[0] - term[2], term[0] + term[2]) * (2 if k else 1)
        place = times(place, shift)
    # Fact 2. Beyond, |M| is at most the bound, and the sum at most that times 2/(first^2 terms).
    beyond = bound * (first * first).inverse() * Fraction(2, terms)
    # The terms of m != 0: g(s) <= e^(bs) for b >= 0 makes them two geometric series.
    others = point(0)
    for key, sign in (("below", 1), ("above", -1)):
        b = number(hint.get(key), key)
        need(b >= 0 and (tilt - b) * sign > 0, f"{key}: on the wrong side of the tilt")
        fall, log_size = real(-abs(tilt - b) * period).exp(), real((tilt - b) * epsilon)
        for step in steps:
            log_size = log_size + top(step.total(b)).log() * step.count
        others = others + log_size.exp() * fall * (1 + -fall).inverse()
    # All of it in units of e^(scales - a epsilon)/period.
    unit = real(tilt * epsilon - sum(step.count * step.scale for step in steps)).exp() * period
    return unit, result + -beyond + -(others * period), result + beyond + outside * unit

def check(told):
    """Prove the claim, or raise Refused."""
    fine = (told.get("format"), told.get("version")) == ("symdp certificate", "1")
    need(fine, "format and version are not those of a certificate of version 1", Malformed)
    claim, witness = told.get("claim"), told.get("witness")
    fine = isinstance(claim, dict) and isinstance(witness, dict)
    need(fine, "claim or witness: missing", Malformed)
    set_units(whole(witness, "bits", 64, MOST_BITS), whole(witness, "reach", 2, 64))
    epsilon, lower, upper = (number(claim.get(key), key) for key in ("epsilon", "lower", "upper"))
    need(0 <= lower <= upper <= 1, "the claim is no interval within [0, 1]")
    direction, reached = claim.get("direction"), lower == 0
    need(direction in ("remove", "add", "both"), "direction: remove, add or both")
    for side in ("remove", "add") if direction == "both" else (direction,):
        unit, low, high = enclose(told, witness.get(side), side == "add", epsilon)
        need(high.hi <= (upper * unit).lo, f"{side}: the upper end is not proved")
        reached = reached or low.lo >= (lower * unit).hi
    need(reached, "the lower end is not proved")
    laws = "; ".join(f"{one['count']} x (" + ", ".join(key.upper() + " = " + " + ".join(
        f"{w} [{law}]" for w, law in zip(one[key], one["laws"]) if w != "0")
        for key in "pq") + ")" for one in told["steps"])
    whom = {"remove": "P against Q", "add": "Q against P", "both": "P against Q, and Q against P"}
    return (f"{claim['lower']} <= delta({claim['epsilon']}) <= {claim['upper']} for {laws}, "
            f"{whom[direction]}, whatever such a pair of laws dominates")

def main(path):
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        need(len(data) <= MOST_BYTES, f"it has more than {MOST_BYTES} bytes", Malformed)
        told = json.loads(data.decode(), parse_int=str, parse_float=str, parse_constant=str)
        sentence = check(told)
    except (Malformed, OSError, ValueError, RecursionError, LookupError, TypeError,
            AttributeError, MemoryError) as error:
        print("not a certificate:", " ".join(str(error).split())[:200], file=sys.stderr)
        return 2
    except Refused as refusal:
        print(f"refused: {refusal}", file=sys.stderr)
        return 1
    print(f"proved: {sentence}")
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
