"""Check a certificate of delta(epsilon). Integers decide; nothing but Python is needed.

    python check_certificate.py FILE.json

A certificate names two laws P and Q of each step's output, the numbers of steps, an epsilon and two
ends of delta. With the loss L = log(p(X)/q(X)), X drawn from P, and S the sum of all losses,

    delta(epsilon) = E g(S - epsilon),   g(s) = max(0, 1 - exp(-s)),   M(z) = E exp(zL).

What is no claim is a plan: it says where to look, and none of it is believed. The parts of the
proof stand as comments where they are computed: numbers, series, formulas, one step, all steps.
"""

import ast
import json
import re
import sys
from fractions import Fraction
from functools import lru_cache
from itertools import zip_longest
from math import ceil, isqrt

FORMAT = "symdp certificate 2"
# Most bytes of a file; signs of a formula and of a number; bits asked for, and of any number;
# steps; and bits of all numbers made, beyond which nothing is proved, so that no file takes for
# ever.
MOST_BYTES = 200000
MOST_TEXT = 4000
MOST_DIGITS = 300
MOST_BITS = 2048
MOST_SIZE = 1 << 15
MOST_COUNT = 10**12
MOST_WORK = 10**9
GUARD = 64  # bits carried inside a function beyond its result's
PARTS = 4  # known parts of a series
REACH = 4  # half widths of a panel within which it converges


class Refused(Exception):
    """The first thing that is not proved."""


class Malformed(Refused):
    """What is no certificate at all."""


def need(proved, what, error=Refused):
    if not proved:
        raise error(what)


def spend(bits, numbers=1):
    global LEFT
    LEFT -= (bits + 64) * numbers
    need(LEFT > 0 and bits < MOST_SIZE, "too much work, or a number is too large")


# ---- Numbers: integers in units of 2^-P.
def set_units(bits):
    global P, W, ONE, LN2, HALF_TURN, PI, LEFT
    P = bits
    W = bits + GUARD
    ONE = 1 << bits
    LEFT = MOST_WORK
    unit = 1 << (W + 16)

    def series_of(inverse, sign):  # 1/inverse + sign/(3 inverse^3) + ...: a term loses < 3 units
        total = 0
        for i in range((W + 20) // (inverse.bit_length() - 1)):
            power = unit // inverse ** (2 * i + 1)
            total += sign**i * (power // (2 * i + 1))
        return total

    # artanh, and Machin's arctan: to 2 units of 2^-W
    LN2 = 2 * series_of(3, 1) >> 16
    machin = 4 * series_of(5, -1) - series_of(239, -1)
    HALF_TURN = 4 * machin >> 16
    PI = Series([HALF_TURN >> GUARD], 2)
    for cached in (exp_of, log_of, erf_of, formula):
        cached.cache_clear()


def powers(r):
    """Sum r^i/i! over i = 0, 1, 2, 3 mod 4; for 0 <= r < 2^-5 < 2^8 terms, which lose < 3 units."""
    spend(W, 16)
    sums = [0, 0, 0, 0]
    term = 1 << W
    i = 0
    while term:
        sums[i % 4] += term
        i += 1
        term = (term * r >> W) // i
    return sums


@lru_cache(maxsize=10000)
def exp_of(x):
    """Enclose exp(x/2^P)."""
    need(x < ONE << 16, "a number is too large")
    x = max(x, -(2 * P + 200) * ONE)  # from there on it is below 1
    k, r = divmod(x << GUARD, LN2)  # x = k log 2 + r, r to 2|k| + 1 < 2^19 units
    result = sum(powers(r >> 8))
    for _ in range(8):
        result = result * result >> W  # of a number below 2: errors fourfold
    # to (2^11 + 2^10) 4^8 < 2^32 2^k
    result = result << max(k - GUARD, 0) >> max(GUARD - k, 0)
    return Series([result], (result >> P) + 2)


@lru_cache(maxsize=10000)
def log_of(x):
    """Enclose log(x/2^P)."""
    need(x > 0, "a logarithm of what may not be positive")
    spend(W, 16)
    e = x.bit_length() - 1
    m = x << (W - e) if W >= e else x >> (e - W)  # in [1, 2), to a unit
    for _ in range(4):
        m = isqrt(m << W)  # in [1, 1.05): a sixteenth of its log
    unit = 1 << W
    y = ((m - unit) << W) // (m + unit)
    square = y * y >> W
    result = 0
    power = y
    odd = 1
    while power:  # y < 2^-5: fewer than 2^8 terms, of which every one loses < 3 units
        result += power // odd
        power = power * square >> W
        odd += 2
    # to 32 (2^10 + 8) + 2|e - P| < 2^32 units
    total = 32 * result + (e - P) * LN2
    return Series([total >> GUARD], 2)


@lru_cache(maxsize=10000)
def erf_of(x):
    """Enclose erf(x/2^P), erf(x) = 2/sqrt(pi) exp(-x^2) (x + 2x^3/3 + 4x^5/15 + ...)."""
    square = point(x) * point(x)
    if (-square).exp().hi <= 3:  # 1 - erf < exp(-x^2)
        return Series([ONE if x > 0 else -ONE], 3)
    term = point(x)
    result = point(x)
    i = 3
    while term.norm > 2 or 4 * square.hi > i * ONE:  # then terms fall by halves: the others < term
        term = term * square * Fraction(2, i)
        result = result + term
        i += 2
    remainder = Series([0], term.size())
    return (result + remainder) * slope_of_erf(point(x))


def slope_of_erf(x):
    """Enclose 2/sqrt(pi) e^(-x^2)."""
    return (PI.log() * Fraction(-1, 2) - x * x).exp() * 2


def turn(angle):
    """Enclose exp(i angle): a complex number is the integers of a centre, and a radius."""
    whole_turn = 2 * HALF_TURN
    fine = angle.parts[0] << GUARD
    turns = fine // whole_turn
    need(abs(turns) < 1 << 40, "an angle is too large")
    a, b, c, d = powers((fine - turns * whole_turn) >> 8)  # to 2^36 units
    re = a - c
    im = b - d
    # Squaring makes an error at most fourfold: 2^37 4^8 < 2^GUARD.
    for _ in range(8):
        squared = (re * re - im * im) >> W
        im = 2 * re * im >> W
        re = squared
    return re >> GUARD, im >> GUARD, angle.radius + 3


def times(a, b):
    a_re, a_im, a_radius = a
    b_re, b_im, b_radius = b
    re = (a_re * b_re - a_im * b_im) >> P
    im = (a_re * b_im + a_im * b_re) >> P
    a_size = isqrt(a_re**2 + a_im**2) + 1
    b_size = isqrt(b_re**2 + b_im**2) + 1
    spend(max(a_size, b_size).bit_length())
    error = (a_size + a_radius) * b_radius + b_size * a_radius
    return re, im, (error >> P) + 3


def raised(a, n):
    half = raised(a, n // 2) if n > 1 else (ONE, 0, 0)
    square = times(half, half)
    return times(square, a) if n % 2 else square


# ---- Series. A real number, or a function of t on a panel |t| <= 1/REACH, is the sum of all
# (c_k + e_k) t^k: c_k is `parts[k]`, 0 beyond; sizes of errors e_k add up to at most `radius`, but
# for those of degrees k >= PARTS, which may have `tail` more. Sizes of all coefficients of a
# product add up to at most the product of such sums: hence all bounds, for complex |t| <= 1.
class Series:
    def __init__(self, parts, radius=0, tail=0):
        self.parts = parts
        self.radius = radius
        self.tail = tail
        self.norm = sum(map(abs, parts)) + tail  # of what is no error of unknown degree
        spend(self.norm.bit_length())

    @property
    def lo(self):
        """The lower end of a number."""
        return self.parts[0] - self.radius

    @property
    def hi(self):
        """The upper end of a number."""
        return self.parts[0] + self.radius

    def size(self):
        return self.norm + self.radius

    def rise(self):
        return self.norm - abs(self.parts[0]) + self.radius

    def spread(self, weigh=lambda k: 1):
        """Bound |f - c_0| on the panel; with k as a weight, |t df/dt| at its ends."""
        sizes = [*map(abs, self.parts), self.tail]
        total = Fraction(0)
        for k in range(1, len(sizes)):
            total += Fraction(weigh(k), REACH**k) * sizes[k]
        return ceil(total) + self.radius

    def __neg__(self):
        return Series([-c for c in self.parts], self.radius, self.tail)

    def __add__(self, v):
        v = series(v)
        parts = [a + b for a, b in zip_longest(self.parts, v.parts, fillvalue=0)]
        return Series(parts, self.radius + v.radius, self.tail + v.tail)

    def __sub__(self, v):
        return self + -v

    def __rsub__(self, v):
        return -self + v

    def __mul__(self, v):
        v = series(v)
        if len(self.parts) == len(v.parts) == 1:  # two numbers
            a = self.parts[0]
            b = v.parts[0]
            error = self.radius * (abs(b) + v.radius) + v.radius * abs(a)
            return Series([a * b >> P], (error >> P) + 2)
        length = max(len(self.parts), len(v.parts))
        sums = [0] * (2 * PARTS)
        for i, a in enumerate(self.parts):
            for j, b in enumerate(v.parts):
                sums[i + j] += a * b
        tail = self.tail * v.norm + v.tail * (self.norm - self.tail)
        tail += sum(map(abs, sums[length:]))
        radius = self.radius * (v.norm + v.radius) + v.radius * self.norm
        parts = [s >> P for s in sums[:length]]
        return Series(parts, (radius >> P) + length + 1, -(-tail >> P))

    __radd__ = __add__
    __rmul__ = __mul__

    def expanded(self, near, first, last, growth=False):
        """Return a_0 + a_1 v + ..., v = near (f - c_0), the first four a_k being given.

        For a size s of v, terms beyond are at most s^4 g/last, their slope 4 s^3 g^2/last, and
        terms from a_1 on at most 2 s g, where g is 1/(1 - s), or with `growth` exp(s).
        """
        v = near * Series([0, *self.parts[1:]], self.radius, self.tail)
        size = v.norm + v.radius
        need(growth or size < ONE, "a panel is too wide, or a number not known to be positive")
        g = exp_of(size).hi if growth else ONE**2 // (ONE - size) + 1
        if not v.norm:
            zero = [0] * len(v.parts)
            return first[0] + Series(zero, (2 * size * g >> P) + 1)
        result = series(first[3])
        for a in first[2::-1]:
            result = result * v + a
        tail = -(-(v.norm**4) * g // (last << 4 * P))
        radius = 4 * v.radius * size**3 * g**2 // (last << 5 * P) + 1
        return Series(result.parts, result.radius + radius, result.tail + tail)

    def reciprocal(self):
        need(self.parts[0], "a division by what may be 0")
        return Series([ONE**2 // self.parts[0]], 1)  # of c_0

    def inverse(self):
        near = self.reciprocal()
        return near * self.expanded(-near, [1] * 4, 1)

    def exp(self):
        first = (1, 1, Fraction(1, 2), Fraction(1, 6))
        return exp_of(self.parts[0]) * self.expanded(point(ONE), first, 24, True)

    def log(self):
        first = (log_of(self.parts[0]), 1, Fraction(-1, 2), Fraction(1, 3))
        return self.expanded(self.reciprocal(), first, 4)

    def erf(self):  # |a_k| <= 5/4 2^((k - 1)/2) sqrt((k - 1)!)/k! (Cramer), below 1/2 for k > 3
        x = point(self.parts[0])
        slope = slope_of_erf(x)
        third = (x * x * 2 - 1) * slope * Fraction(1, 3)
        first = (erf_of(self.parts[0]), slope, -slope * x, third)
        return self.expanded(point(ONE), first, 2)

    def abs(self):
        is_number = len(self.parts) == 1
        need(is_number or abs(self.parts[0]) >= self.spread(), "a kink lies inside a panel")
        return self if self.parts[0] >= 0 else -self


def point(n):
    return Series([n])


def series(x):
    """Return a rational number as a series."""
    if isinstance(x, Series):
        return x
    whole_units, remainder = divmod(x.numerator << P, x.denominator)
    return Series([whole_units], 1 if remainder else 0)


# ---- Formulas. Python's own parser reads them; the tree is walked here, and nothing is ever run.
NUMBER = re.compile(r"[-+]?[0-9]+(/0*[1-9][0-9]*|(\.[0-9]+)?([eE][-+]?[0-9]{1,4})?)")
SIGNS = re.compile(r"[A-Za-z0-9_ .+*/(),-]+")
NESTED = re.compile(r"([-+(] *){40}")


def number(text, what):
    """Read a decimal or a ratio exactly."""
    spend(MOST_DIGITS, 2)
    is_short = isinstance(text, str) and len(text) <= MOST_DIGITS
    need(is_short and NUMBER.fullmatch(text), f"{what}: no exact number", Malformed)
    return Fraction(text)


@lru_cache(maxsize=1000)
def formula(text):
    is_short = isinstance(text, str) and len(text) <= MOST_TEXT
    need(is_short, "a formula is missing or too long")
    is_plain = SIGNS.fullmatch(text) and not NESTED.search(text)
    need(is_plain, "a formula: a sign that is not allowed, or nested too deeply")
    tree = ast.parse(text.strip(), mode="eval").body
    for node in reversed(list(ast.walk(tree))):  # the inner ones first
        inner = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        if isinstance(node, ast.Call):
            name = getattr(inner.pop(0), "id", "")
            is_known = name in ("exp", "log", "erf", "Abs")
            has_one_argument = len(inner) == 1 and not node.keywords
            message = f"a formula: {name[:20]} is unknown, or has not one argument"
            need(is_known and has_one_argument, message)
        if isinstance(node, ast.Constant):  # its text, of which Python has made a float
            literal = text.strip()[node.col_offset : node.end_col_offset]
            node.known = number(literal, "a formula")
        elif inner and all(hasattr(part, "known") for part in inner):
            node.known = value(node, None)
    return tree


def inverted(u):
    if isinstance(u, Fraction) and u:
        return 1 / u
    return series(u).inverse()


def value(tree, x):
    """Evaluate a formula at x: rational numbers stay exact as long as they are short."""
    if hasattr(tree, "known"):
        return tree.known
    name = getattr(tree, "id", None)
    if name == "x":
        return x
    if name == "pi":
        return PI
    op = type(getattr(tree, "op", None))
    if op is ast.USub:
        return value(tree.operand, x) * -1
    if op is ast.UAdd:
        return value(tree.operand, x) * 1
    if isinstance(tree, ast.Call):
        argument = series(value(tree.args[0], x))
        return getattr(argument, tree.func.id.lower())()
    need(op in (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow), "a formula: what is unknown")
    a = value(tree.left, x)
    b = value(tree.right, x)
    if op is ast.Pow:
        if not isinstance(b, Fraction) or b.denominator > 1 or abs(b) > 64:
            return series(b * log_value(tree.left, x)).exp()
        result = Fraction(1)
        for _ in range(abs(int(b))):
            result = result * a
        if b < 0:
            result = inverted(result)
    elif op is ast.Mult:
        result = a * b
    elif op is ast.Div:
        result = a * inverted(b)
    elif op is ast.Add:
        result = a + b
    else:
        result = a + -b
    if isinstance(result, Fraction) and result.numerator**2 + result.denominator**2 > 1 << 4000:
        return series(result)
    return result


def log_value(tree, x):
    """Evaluate the logarithm of a formula, so that a density may be small beyond all units."""
    op = type(getattr(tree, "op", None))
    try:
        constant = getattr(tree, "known", Fraction(0))
        direct = series(value(tree, x) if op is ast.Add else constant)
        if ONE >> 8 < direct.parts[0] < ONE << 4:
            return direct.log()
        if op in (ast.Mult, ast.Div, ast.Add):
            u = log_value(tree.left, x)
            v = log_value(tree.right, x)
            if op is ast.Add:
                return log_sum([u, v])
            return u + v if op is ast.Mult else u + -v
        if op is ast.Pow:
            return value(tree.right, x) * log_value(tree.left, x)
        if isinstance(tree, ast.Call) and tree.func.id == "exp":
            return value(tree.args[0], x)
    except Refused:  # a part may be 0, or negative
        pass
    return series(value(tree, x)).log()


def log_sum(us):
    """Return log(exp(u) + exp(v) + ...), the largest term taken out."""
    most, *others = sorted(map(series, us), key=lambda u: -u.parts[0])
    if not others:
        return most
    shares = ((u - most).exp() for u in others)
    return most + sum(shares, point(ONE)).log()


# ---- One step.
def listed(entries, key, length=None):
    values = entries.get(key)
    is_list = isinstance(values, list) and length in (None, len(values))
    need(is_list, f"{key}: no list", Malformed)
    return values


def whole(entries, key, least, most):
    exact = number(entries.get(key), key)
    is_inside = int(exact) == exact and least <= exact <= most
    need(is_inside, f"{key}: out of range", Malformed)
    return int(exact)


def rule_of(witness):
    """Read nodes and weights on [-1, 1], and bound their errors at powers below twice as many."""
    rule = [(number(t, "a node"), number(w, "a weight")) for t, w in listed(witness, "rule")]
    is_fine = len(rule) <= MOST_DIGITS and all(abs(t) <= 1 and w > 0 for t, w in rule)
    need(is_fine, "rule: too long, a node outside, or a weight <= 0")
    gap = 0
    terms = [series(w) for _, w in rule]
    for m in range(2 * len(rule)):
        integral = Fraction(2, m + 1) if m % 2 == 0 else Fraction(0)
        off = sum(terms, series(-integral))
        gap = max(gap, off.size())
        terms = [v * t for v, (t, _) in zip(terms, rule)]
    return rule, gap


class Step:
    """Laws P = sum p_i f_i and Q = sum q_i f_i of a step, and the nodes of its integrals."""

    def __init__(self, step, hint, rule, swapped):
        self.count = whole(step, "count", 1, MOST_COUNT)
        self.scale = number(hint.get("scale"), "scale")
        laws = listed(step, "laws")
        p = [number(w, "a weight") for w in listed(step, "p", len(laws))]
        q = [number(w, "a weight") for w in listed(step, "q", len(laws))]
        need(min(p + q) >= 0 and sum(p) == sum(q) == 1, "weights are not >= 0 with sum 1")
        logs = [[w and series(w).log() for w in weights] for weights in (p, q)]
        self.weights = logs[::-1] if swapped else logs
        self.nodes = []
        self.panels = []
        self.rows = []
        self.rule, self.gap = rule
        support = step.get("support")
        if support == "points":
            need(all(isinstance(law, list) for law in laws), "laws: lists?", Malformed)
            last = max(map(len, laws)) - 1
            self.add_nodes(0, last, lambda k: [formula(law[k]) for law in laws])
        elif support == "integers":
            need(not any(isinstance(law, list) for law in laws), "laws: lists?", Malformed)
            first, last = (int(number(k, "range")) for k in listed(hint, "range", 2))
            self.add_nodes(first, last, lambda _: [formula(law) for law in laws])
        else:
            self.laws = [formula(text) for text in laws]
            low, high = listed(step, "support", 2)
            first = [] if low == "-oo" else [number(low, "an end")]
            last = [] if high == "oo" else [number(high, "an end")]
            self.lay(hint, first, last)

    def add_nodes(self, first, last, laws_at):
        """Make a node of every integer, or point of a list."""
        for k in range(first, last + 1):
            self.laws = laws_at(k)
            logs = self.logs(series(k))
            if logs:
                self.nodes.append((point(ONE), *logs))

    def lay(self, hint, first, last):
        """Lay panels between neighbours of rising lists, nodes on them; cut each into cells."""
        rows = [[number(x, "panels") for x in row] for row in listed(hint, "panels")]
        edges = sum(rows, first) + last
        need(edges == sorted(edges), "panels that overlap, or lie outside of the support")
        for row, count in zip(rows, listed(hint, "cells", len(rows))):
            cut = whole({"cells": count}, "cells", 0, MOST_COUNT)
            pairs = list(zip(row, row[1:]))
            spend(P, cut * len(pairs))  # before all ends are listed
            panels = [self.panel(x, y) for x, y in pairs]
            for middle, radius, _, _ in panels:
                for t, w in self.rule:
                    logs = self.logs(series(middle + radius * t))
                    self.nodes.append((series(w * radius), *logs))
            ends = []
            for x, y in pairs:
                ends += [x + (y - x) * Fraction(k, cut) for k in range(cut)]
            ends.append(row[-1])
            cells = [self.panel(x, y) for x, y in zip(ends, ends[1:])]
            losses = [self.logs(series(x))[1] for x in ends]
            self.rows.append((cells, losses))
            self.panels += panels

    def panel(self, x, y):
        """Return the middle, half the width, log p and the loss as series."""
        need(x < y, "an empty panel")
        middle = (x + y) / 2
        radius = (y - x) / 2
        t = Series([0, ONE, 0, 0])
        return (middle, radius, *self.logs(middle + t * (radius * REACH)))

    def logs(self, x):
        """Return log p and the loss; None where one of the laws is 0."""
        sides = []
        for weights in self.weights:
            terms = []
            for w, law in zip(weights, self.laws):
                if w and getattr(law, "known", 1) != 0:
                    terms.append(w + log_value(law, x) + x * 0)
            sides.append(terms)
        p, q = sides
        if not (p and q):
            return None
        log_p = log_sum(p)
        return log_p, log_p - log_sum(q)

    def measure(self, tilt, height):
        """Return W_j and an error: |e^-scale M(tilt + iy) - sum W_j e^(iy loss_j)|, |y| <= height.

        The integrand is exp of a series u in t; its coefficients are below those of exp(|u_0| +
        |u_1| t + ...). On the panel, |t| <= 1/REACH, its terms from degree 2N on add up to at most
        that at t = 1 over REACH^2N. N nodes integrate the others, but for their moments' error.
        """
        tilt = series(tilt)
        scale = series(self.scale)
        error = Fraction(0)
        share = 5 * ONE // REACH ** (2 * len(self.rule)) + self.gap + 6
        for _, radius, log_p, loss in self.panels:
            u = log_p + loss * tilt - scale
            most = u + point(u.rise()) + height * point(loss.rise())
            error += exp_of(most.hi).hi * share * radius / ONE
        weights = [w * (u + v * tilt - scale).exp() for w, u, v in self.nodes]
        return weights, int(error) + 1

    def total(self, tilt):
        """Enclose M at a real point, times e^-scale."""
        weights, error = self.measure(tilt, point(0))
        return sum(weights, Series([0], error))

    def snap(self, spacing, offset):
        """Put losses on a lattice, and return by how much those of all steps move at most."""
        moved = 0
        for i, (w, log_p, loss) in enumerate(self.nodes):
            index = round((Fraction(loss.lo, ONE) - offset) / spacing)
            near = offset + index * spacing
            self.nodes[i] = (w, log_p, series(near))
            moved = max(moved, (loss - near).size())
        return point(moved) * self.count

    def density(self, cell, tilt):
        """Return a lower bound of p e^(tilt loss - scale)/|loss'| on a cell, in units."""
        _, radius, log_p, loss = cell
        u = log_p + loss * tilt - self.scale
        least = max(0, exp_of(u.parts[0] - u.spread()).lo)
        slope = loss.spread(lambda k: k) + 1
        return int(least * radius / slope * ONE)

    def gain(self, tilt, height):
        """Return a lower bound of e^-scale (M(tilt) - |M(tilt + iy)|) for all y >= height.

        On a row of cells the loss is continuous and takes all values between those at the ends:
        there its law, times e^(tilt loss - scale), has a density of at least the least c of the
        cells. A layer as wide as these values differ by w lies below it, and others upon that, on
        the rows beside the least cell. Of a layer the transform is at most c w |sin(v)/v|, v =
        y w/2, and |sin(u)/u| <= 1 - v^2/6 + v^4/120 for all u >= v if v <= 2, else <= 1/v.
        """
        result = point(0)
        for cells, losses in self.rows:
            densities = [self.density(cell, tilt) for cell in cells]
            layers = [(0, len(cells), 0)]
            for i, j, base in layers:  # to which layers are added
                spend(0, j - i)
                if i == j:
                    continue
                low = min(range(i, j), key=densities.__getitem__)
                least = densities[low]
                width = point(max(0, (losses[j] - losses[i]).abs().lo))
                v = point((height * width).lo // 2)
                if v.hi <= 2 * ONE:
                    square = v * v
                    fall = square * (square * Fraction(-1, 120) + Fraction(1, 6))
                else:
                    fall = 1 - v.inverse()
                result += point(least - base) * width * fall
                layers += [(i, low, least), (low + 1, j, least)]
        return result


# ---- All steps.
def enclose(certificate, side, epsilon):
    """Return a unit and two numbers: in these units, delta is from the first to the second.

    By Poisson's formula for s -> e^(-as) E g(S - epsilon + s), a > 0, whose transform is
    M(z) e^(-epsilon z)/(z (z + 1)) on Re z = a: with z_k = a + 2 pi i k/period,
      1/period sum_k M(z_k) e^(-epsilon z_k)/(z_k (z_k + 1))
        = sum_m e^(-a m period) E g(S - epsilon + m period).
    No term on the right is negative, and the one of m = 0 is delta: the sum is an upper bound.
    On a lattice M is periodic; the sum over z + 2 pi i l/spacing of e^(-epsilon z)/(z (z + 1)) is
    spacing e^(-bz) (A(z) - e^(epsilon - b) A(z + 1)), b = base, A(z) = 1/(1 - e^(-spacing z)).
    """
    hint = certificate["witness"][side]
    rule = rule_of(certificate["witness"])
    hints = listed(hint, "steps", len(listed(certificate, "steps")))
    pairs = zip(certificate["steps"], hints)
    steps = [Step(step, own_hint, rule, side == "add") for step, own_hint in pairs]
    tilt = number(hint.get("tilt"), "tilt")
    terms = whole(hint, "terms", 1, MOST_WORK)
    spacing = number(hint.get("spacing", "0"), "spacing")  # of a lattice
    period = spacing * terms or number(hint.get("period"), "period")
    is_fine = tilt > 0 and period > 0 and steps
    need(is_fine, "tilt and period must be positive, and some steps told")
    outside = mass_outside(steps)
    base = epsilon
    moved = point(0)
    if spacing:
        base, moved = moved_to_lattice(steps, hints, spacing, epsilon)
    first = PI * (2 / period)
    result, bound = sum_on_line(steps, tilt, first, terms, spacing, base, epsilon - base)
    # All of it is in units of e^(scales - a base)/period.
    scales = sum(step.count * step.scale for step in steps)
    unit = series(tilt * base - scales).exp() * period
    # Beyond, |M| is at most the bound, and the sum at most that times 2/(first^2 terms).
    if spacing:
        beyond = moved * unit
    else:
        beyond = bound * (first * first).inverse() * Fraction(2, terms)
    others = other_terms(steps, hint, tilt, period, base, epsilon)
    lower = result - beyond - others * period
    upper = result + beyond + outside * unit
    return unit, lower, upper


def mass_outside(steps):
    """Bound the mass of all P outside the panels.

    A law has mass 1: what it has not on the panels lies elsewhere, where the loss counts as
    infinite above and is left out below. Nothing of the tails has to be known.
    """
    outside = point(0)
    for step in steps:
        unscaled = series(step.scale).exp()
        p = step.total(Fraction(0)) * unscaled
        q = step.total(Fraction(-1)) * unscaled
        need(p.lo <= ONE and q.lo <= ONE, "a law has a mass above 1")
        outside += point(ONE - p.lo) * step.count
    return outside


def moved_to_lattice(steps, hints, spacing, epsilon):
    """Move losses to offset + spacing times whole numbers: g rises by no more than they move.

    Return the first possible sum above epsilon, and by how much all losses move.
    """
    base = Fraction(0)
    moved = point(0)
    for step, hint in zip(steps, hints):
        need(not step.panels, "spacing: a law has a density")
        offset = number(hint.get("offset"), "offset")
        moved += step.snap(spacing, offset)
        base += step.count * offset
    return base + spacing * ((epsilon - base) // spacing + 1), moved


def sum_on_line(steps, tilt, first, terms, spacing, base, gap):
    """Return the sum of M(z_k) e^(-base z_k) times the kernel, and a bound of |M| beyond it."""
    bound = point(ONE)
    lines = []
    for step in steps:
        weights, error = step.measure(tilt, first * terms)
        far = sum(weights, point(error)) - step.gain(tilt, first * (terms + 1))
        bound *= (log_of(far.hi) * step.count).exp()
        values = [(w.parts[0], 0, w.radius) for w in weights]
        turns = [turn(first * loss) for _, _, loss in step.nodes]
        lines.append((step.count, error, values, turns))
    result = point(0)
    shift = turn(first * -base)
    phase = (ONE, 0, 0)
    exponents = (-tilt * spacing, -(tilt + 1) * spacing, gap)
    falls = [series(exponent).exp() for exponent in exponents]
    for k in range(terms // 2 + 1 if spacing else terms + 1):
        re, im = kernel(tilt, first * k, spacing, *falls)
        term = times(phase, (re.parts[0], im.parts[0], re.radius + im.radius))
        for count, error, values, turns in lines:
            a, b, radius = map(sum, zip(*values))
            term = times(term, raised((a, b, radius + error), count))
            values[:] = map(times, values, turns)
        is_single = k == 0 or (spacing and 2 * k == terms)
        result += Series([term[0]], term[2]) * (1 if is_single else 2)
        phase = times(phase, shift)
    return result, bound


def other_terms(steps, hint, tilt, period, base, epsilon):
    """Bound the terms of m != 0: g(s) <= e^(bs) for b >= 0 makes them two geometric series."""
    others = point(0)
    for key, sign in (("below", 1), ("above", -1)):
        b = number(hint.get(key), key)
        need(b >= 0 and (tilt - b) * sign > 0, f"{key}: on the wrong side of the tilt")
        log_fall = -abs(tilt - b) * period
        log_size = series(tilt * base - b * epsilon + log_fall)
        for step in steps:
            log_size += log_of(step.total(b).hi) * step.count
        others += log_size.exp() * (1 - series(log_fall).exp()).inverse()
    return others


# ---- Shuffled answers.
def shuffled(certificate, epsilon):
    """Bound delta from above: n people answer, each by one of the laws told, without their names.

    One of them changes the law from p to q, and w is the least mass of every outcome under all
    laws. Each other answer is, with probability w(y), the outcome y whatever its law is; so that
    n delta is at most n sum (p - e^epsilon q)+ over outcomes of w = 0, and E S+ over the others, S
    a sum of n values X: (p(y) - e^epsilon q(y))/w(y) with probability w(y), else 0. With phi(z) = E
    e^(zX), t > 0, z_k = t + 2 pi i k/period, and a normal G of mean 0 and variance blur^2,
      E S+ <= E (S + G)+ <= 1/period sum_k phi(z_k)^n e^(blur^2 z_k^2/2)/z_k^2
    as s+ is convex, and by Poisson's formula, of which no term is negative. Without terms E S+ <=
    phi(t)^n/(e t), for s+ <= e^(ts)/(e t).
    """
    n = whole(certificate, "people", 2, MOST_COUNT)
    texts = listed(certificate, "laws")
    if "support" in certificate:
        return of_densities(certificate, [formula(text) for text in texts], n, epsilon)
    laws = []
    for law in texts:
        masses = listed({"law": law}, "law", len(texts[0]))
        laws.append([number(mass, "a mass") for mass in masses])
    is_fine = all(min(law) >= 0 and sum(law) == 1 for law in laws)
    need(is_fine, "a law is not >= 0 with sum 1")
    least = list(map(min, zip(*laws)))
    kinds = {}
    for i, p in enumerate(laws):
        spend(len(p), len(laws))
        for j, q in enumerate(laws):
            if i != j:
                outcomes = tuple(sorted(zip(p, q, least)))
                kinds.setdefault(outcomes, f"{i} {j}")
    bound = point(0)
    for outcomes, pair in kinds.items():
        hint = certificate["plans"].get(pair)
        need(hint, "a pair of laws has no plan")
        end = of_pair(outcomes, n, epsilon, hint)
        bound = bound if bound.hi >= end.hi else end
    return bound


class Answer(Step):
    """On panels, each with its least law: w, that law times e^-slack, and X = (p - e^epsilon q)/w.

    Without a pair it is the mass of one law there.
    """

    def __init__(self, laws, hint, rule, ends, pair, epsilon):
        self.laws = laws
        self.scale = Fraction(0)
        self.nodes = []
        self.panels = []
        self.rule, self.gap = rule
        self.pair = pair
        self.epsilon = epsilon
        self.slack = number(hint.get("slack"), "slack")
        need(self.slack >= 0, "a negative slack")
        rows = [[number(x, "panels") for x in row] for row in listed(hint, "panels")]
        edges = sum(rows, ends[0]) + ends[1]
        need(edges == sorted(edges), "panels that overlap, or lie outside of the support")
        for row, least in zip(rows, listed(hint, "least", len(rows))):
            self.least = whole({"least": least}, "least", 0, len(laws) - 1)
            for x, y in zip(row, row[1:]):
                self.add_panel(x, y)

    def add_panel(self, x, y):
        panel = self.panel(x, y)
        self.panels.append(panel)
        middle, radius = panel[:2]
        for t, weight in self.rule:
            logs = self.logs(series(middle + radius * t))
            self.nodes.append((series(weight * radius), *logs))

    def logs(self, x):
        """Return log w and X, or the log of one law and 0; w must lie below every law."""
        logs = [log_value(law, x) + x * 0 for law in self.laws]
        if isinstance(self.pair, int):
            return logs[self.pair], x * 0
        w = logs[self.least] - self.slack
        for log in logs:
            difference = log - w
            need(difference.parts[0] >= difference.spread(), "another law may be the least one")
        p, q = (logs[index] - w for index in self.pair)
        return w, p.exp() - (q + self.epsilon).exp()


def of_densities(certificate, laws, n, epsilon):
    """Bound delta of laws with densities of mass 1: outputs beside the panels are counted apart."""
    low, high = listed(certificate, "support", 2)
    first = [] if low == "-oo" else [number(low, "an end")]
    last = [] if high == "oo" else [number(high, "an end")]
    rule = rule_of(certificate)
    bound = point(0)
    for i in range(len(laws)):
        for j in range(len(laws)):
            if i == j:
                continue
            hint = certificate["plans"].get(f"{i} {j}")
            need(hint, "a pair of laws has no plan")
            tilt, _, _, terms, spacing = plan_of(hint)
            panels = laws, hint, rule, (first, last)
            answer = Answer(*panels, (i, j), epsilon)
            mass = Answer(*panels, i, epsilon).total(0)
            need(mass.lo <= ONE, "a law has a mass above 1")
            left = 1 - answer.total(0)
            weights, error = answer.measure(tilt, spacing * terms)
            values = [x for _, _, x in answer.nodes]
            end = of_sum(weights, values, left, error, n, hint) + point(ONE - mass.lo)
            bound = bound if bound.hi >= end.hi else end
    return bound


def plan_of(hint):
    """Return tilt, period, blur, number of terms, and the spacing of frequencies."""
    t = number(hint.get("tilt"), "tilt")
    period = number(hint.get("period"), "period")
    blur = number(hint.get("blur"), "blur")
    need(t > 0 and period > 0 and blur > 0, "tilt, period and blur must be positive")
    return t, period, blur, whole(hint, "terms", 0, MOST_WORK), PI * (2 / period)


def of_pair(outcomes, n, epsilon, hint):
    """Bound the delta of one pair of laws, told as triples p, q, w."""
    t = plan_of(hint)[0]
    growth = series(epsilon).exp()
    atoms = []
    apart = point(0)
    for p, q, w in outcomes:
        if w:
            atoms.append((w, series(p / w) - growth * (q / w)))
            continue
        gain = (p - growth * q).hi
        if gain > 0:
            apart += point(gain)
    weights = [(x * t).exp() * w for w, x in atoms]
    left = series(1 - sum(w for w, _ in atoms))
    return of_sum(weights, [x for _, x in atoms], left, 0, n, hint) + apart


def of_sum(weights, losses, left, error, n, hint):
    """Bound E S+/n: E e^(zX) is left + sum weights e^(iy losses), to an error, at tilt + iy."""
    t, period, blur, terms, first = plan_of(hint)
    highest = sum(weights, left) + point(error)
    top = (log_of(highest.hi) * n).exp()
    if not terms:
        return top * (series(1).exp() * n * t).inverse()
    values = [(weight.parts[0], 0, weight.radius) for weight in weights]
    turns = [turn(first * x) for x in losses]
    constant = (left.parts[0], 0, left.radius + error)
    half_variance = blur * blur / 2
    result = point(0)
    for k in range(terms + 1):
        y = first * k
        re_square = t * t - y * y
        fall = (re_square * half_variance).exp()
        re, im = inverse_of(re_square, y * (2 * t))
        a, b, radius = map(sum, zip(*values, constant))
        term = times(raised((a, b, radius), n), turn(y * (blur * blur * t)))
        term = times(term, (re.parts[0], im.parts[0], re.radius + im.radius))
        result += Series([term[0]], term[2]) * fall * (2 if k else 1)
        values[:] = map(times, values, turns)
    y = first * (terms + 1)
    fall = ((t * t - y * y) * half_variance).exp()
    beyond = fall * (first * first).inverse()
    total = result + top * beyond * Fraction(2, terms)
    return total * (1 / (period * n))


def kernel(a, y, spacing, fall, next_fall, gap):
    """Return 1/(z (z + 1)) at z = a + iy; on a lattice, spacing (A(z) - e^gap A(z + 1))."""
    if not spacing:
        return inverse_of(a * (a + 1) - y * y, y * (2 * a + 1))
    cosine, sine, radius = turn(y * spacing)
    cosine = Series([cosine], radius)
    sine = Series([sine], radius)
    near = inverse_of(1 - fall * cosine, fall * sine)
    far = inverse_of(1 - next_fall * cosine, next_fall * sine)
    return [(u - gap * v) * spacing for u, v in zip(near, far)]


def inverse_of(re, im):
    inverse_square = (re * re + im * im).inverse()
    return re * inverse_square, -im * inverse_square


def check(certificate):
    """Prove the claim, or raise Refused."""
    set_units(64)
    is_known = certificate.get("format") == FORMAT
    message = f"its format is not '{FORMAT}'; symdp certify --certificate FILE writes one"
    need(is_known, message, Malformed)
    claim = certificate["claim"]
    witness = certificate["witness"]
    set_units(whole(witness, "bits", 64, MOST_BITS))
    epsilon = number(claim.get("epsilon"), "epsilon")
    lower = number(claim.get("lower"), "lower")
    upper = number(claim.get("upper"), "upper")
    if "shuffled" in certificate:
        answers = certificate["shuffled"]
        need(epsilon >= 0 == lower, "of shuffled answers no lower end is proved", Malformed)
        end = shuffled({**witness, **answers}, epsilon)
        need(end.hi <= series(upper).lo, "the upper end is not proved")
        whole_mass = ", of mass 1" if "support" in answers else ""
        return (
            f"delta({claim['epsilon']}) <= {claim['upper']} for shuffled answers of people, "
            f"each by one of the laws{whole_mass}: {json.dumps(answers)}"
        )
    whom = {"remove": "P against Q", "add": "Q against P", "both": "P against Q and Q against P"}
    direction = claim.get("direction")
    is_fine = 0 <= lower <= upper <= 1 and direction in whom
    need(is_fine, "no interval in [0, 1], or direction")
    reached = lower == 0
    for side in ("remove", "add") if direction == "both" else (direction,):
        unit, low, high = enclose(certificate, side, epsilon)
        need(high.hi <= (upper * unit).lo, f"{side}: the upper end is not proved")
        reached = reached or low.lo >= (lower * unit).hi
    need(reached, "the lower end is not proved")
    return (
        f"{claim['lower']} <= delta({claim['epsilon']}) <= {claim['upper']} for the laws of "
        f"{whom[direction]}, of mass 1, and all they dominate: {json.dumps(certificate['steps'])}"
    )


def keyed(pairs):
    """Of two values of one key, a person may read the one and this program the other."""
    need(len(dict(pairs)) == len(pairs), "a key is there twice", Malformed)
    return dict(pairs)


def read(path):
    """Read a file as text alone: numbers stay as they are written."""
    with open(path, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    need(len(data) <= MOST_BYTES, f"it has more than {MOST_BYTES} bytes", Malformed)
    certificate = json.loads(
        data.decode(),
        parse_int=str,
        parse_float=str,
        parse_constant=str,
        object_pairs_hook=keyed,
    )
    need(type(certificate) is dict, "it holds no object with steps and a claim", Malformed)
    return certificate


# What any file may raise in Python; all else is a mistake of this program.
ERRORS = (
    Refused,
    OSError,
    ValueError,
    RecursionError,
    LookupError,
    TypeError,
    AttributeError,
    SyntaxError,
    MemoryError,
)


def main(path):
    try:
        print("proved:", check(read(path)))
    except ERRORS as error:
        kind = "not a certificate:"
        code = 2
        if type(error) is Refused:
            kind = "refused:"
            code = 1
        words = "an entry is missing, or is not of the kind that a certificate has there"
        if isinstance(error, json.JSONDecodeError):
            words = f"no JSON ({error}); symdp certify --certificate FILE writes one"
        elif isinstance(error, (Refused, OSError, ValueError, MemoryError)):
            words = str(error)
        print(kind, " ".join(words.split())[:200] or type(error).__name__, file=sys.stderr)
        sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
