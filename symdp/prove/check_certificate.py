"""Check a certificate of delta(epsilon). Integers decide; nothing but Python is needed.

    python check_certificate.py FILE.json

A certificate names two laws P and Q of each step's output, the numbers of steps, an epsilon and two
ends of delta. With the loss L = log(p(X)/q(X)), X drawn from P, and S the sum of all losses,

    delta(epsilon) = E g(S - epsilon),   g(s) = max(0, 1 - exp(-s)),   M(z) = E exp(zL).

What is no claim is a plan: it says where to look, and none of it is believed. The parts of the
proof stand as comments where they are computed: numbers, series, formulas, one step, all steps.
"""

# fmt: off
import ast, json, re, sys
from fractions import Fraction
from functools import lru_cache
from itertools import zip_longest
from math import ceil, isqrt

FORMAT = "symdp certificate 2"
# Most bytes of a file; signs of a formula and a number; bits asked for, and of any number; steps;
# and bits of all numbers made, beyond which nothing is proved, so that no file takes for ever.
MOST_BYTES, MOST_TEXT, MOST_DIGITS, MOST_BITS, MOST_SIZE = 200000, 4000, 300, 2048, 1 << 15
MOST_COUNT, MOST_WORK = 10**12, 10**9
GUARD = 64  # bits carried inside a function beyond its result's
PARTS, REACH = 4, 4  # known parts of a series; half widths of a panel within which it converges

class Refused(Exception):
    """The first thing that is not proved."""

class Malformed(Refused):
    """What is no certificate at all."""

def need(proved, what, error=Refused):
    if not proved: raise error(what)

def spend(bits, numbers=1):
    global LEFT
    LEFT -= (bits + 64) * numbers
    need(LEFT > 0 and bits < MOST_SIZE, "too much work, or a number is too large")

# ---- Numbers: integers in units of 2^-P.
def set_units(bits):
    global P, W, ONE, LN2, HALF_TURN, PI, LEFT
    P, W, ONE, LEFT = bits, bits + GUARD, 1 << bits, MOST_WORK
    unit = 1 << (W + 16)

    def series_of(inverse, sign):  # 1/inverse + sign/(3 inverse^3) + ...: a term loses < 3 units
        terms = range((W + 20) // (inverse.bit_length() - 1))
        return sum(sign**i * (unit // inverse ** (2 * i + 1) // (2 * i + 1)) for i in terms)

    LN2 = 2 * series_of(3, 1) >> 16  # artanh, and Machin's arctan: to 2 units of 2^-W
    HALF_TURN = 4 * (4 * series_of(5, -1) - series_of(239, -1)) >> 16
    PI = Series([HALF_TURN >> GUARD], 2)
    for cached in (exp_of, log_of, erf_of, formula): cached.cache_clear()

def powers(r):
    """Sum r^i/i! over i = 0, 1, 2, 3 mod 4; for 0 <= r < 2^-5 < 2^8 terms, which lose < 3 units."""
    spend(W, 16)
    sums, term, i = [0, 0, 0, 0], 1 << W, 0
    while term:
        sums[i % 4], i = sums[i % 4] + term, i + 1
        term = (term * r >> W) // i
    return sums

@lru_cache(maxsize=10000)
def exp_of(x):
    """Enclose exp(x/2^P)."""
    need(x < ONE << 16, "a number is too large")
    x = max(x, -(2 * P + 200) * ONE)  # from there on it is below 1
    k, r = divmod(x << GUARD, LN2)  # x = k log 2 + r, r to 2|k| + 1 < 2^19 units
    result = sum(powers(r >> 8))
    for _ in range(8): result = result * result >> W  # of a number below 2: errors fourfold
    result = result << max(k - GUARD, 0) >> max(GUARD - k, 0)  # to (2^11 + 2^10) 4^8 < 2^32 2^k
    return Series([result], (result >> P) + 2)

@lru_cache(maxsize=10000)
def log_of(x):
    """Enclose log(x/2^P)."""
    need(x > 0, "a logarithm of what may not be positive")
    spend(W, 16)
    e = x.bit_length() - 1
    m = x << (W - e) if W >= e else x >> (e - W)  # in [1, 2), to a unit
    for _ in range(4): m = isqrt(m << W)  # in [1, 1.05): a sixteenth of its log
    y = ((m - (1 << W)) << W) // (m + (1 << W))
    square, result, power, odd = y * y >> W, 0, y, 1
    while power:  # y < 2^-5: fewer than 2^8 terms, of which every one loses < 3 units
        result, power, odd = result + power // odd, power * square >> W, odd + 2
    # to 32 (2^10 + 8) + 2|e - P| < 2^32 units
    return Series([(32 * result + (e - P) * LN2) >> GUARD], 2)

@lru_cache(maxsize=10000)
def erf_of(x):
    """Enclose erf(x/2^P), erf(x) = 2/sqrt(pi) exp(-x^2) (x + 2x^3/3 + 4x^5/15 + ...)."""
    square, term, result, i = point(x) * point(x), point(x), point(x), 3
    if (-square).exp().hi <= 3: return Series([ONE if x > 0 else -ONE], 3)  # 1 - erf < exp(-x^2)
    while term.norm > 2 or 4 * square.hi > i * ONE:  # then terms fall by halves: the rest is < term
        term = term * square * Fraction(2, i)
        result, i = result + term, i + 2
    return (result + Series([0], term.size())) * slope_of_erf(point(x))

def slope_of_erf(x): return (PI.log() * Fraction(-1, 2) - x * x).exp() * 2  # 2/sqrt(pi) e^(-x^2)

def turn(angle):
    """Enclose exp(i angle): a complex number is the integers of a centre, and a radius."""
    turns = (angle.parts[0] << GUARD) // (2 * HALF_TURN)
    need(abs(turns) < 1 << 40, "an angle is too large")
    a, b, c, d = powers(((angle.parts[0] << GUARD) - turns * 2 * HALF_TURN) >> 8)  # to 2^36 units
    re, im = a - c, b - d
    # Squaring makes an error at most fourfold: 2^37 4^8 < 2^GUARD.
    for _ in range(8): re, im = (re * re - im * im) >> W, 2 * re * im >> W
    return re >> GUARD, im >> GUARD, angle.radius + 3

def times(a, b):
    re, im = (a[0] * b[0] - a[1] * b[1]) >> P, (a[0] * b[1] + a[1] * b[0]) >> P
    size, other = isqrt(a[0] ** 2 + a[1] ** 2) + 1, isqrt(b[0] ** 2 + b[1] ** 2) + 1
    spend(max(size, other).bit_length())
    return re, im, (((size + a[2]) * b[2] + other * a[2]) >> P) + 3

def raised(a, n):
    half = raised(a, n // 2) if n > 1 else (ONE, 0, 0)
    return times(times(half, half), a) if n % 2 else times(half, half)

# ---- Series. A real number, or a function of t on a panel |t| <= 1/REACH, is the sum of all
# (c_k + e_k) t^k: c_k is `parts[k]`, 0 beyond; sizes of errors e_k add up to at most `radius`, but
# for those of degrees k >= PARTS, which may have `tail` more. Sizes of all coefficients of a
# product add up to at most the product of such sums: hence all bounds, for complex |t| <= 1.
class Series:
    def __init__(self, parts, radius=0, tail=0):
        self.parts, self.radius, self.tail = parts, radius, tail
        self.norm = sum(map(abs, parts)) + tail  # of what is no error of unknown degree
        spend(self.norm.bit_length())
    lo = property(lambda self: self.parts[0] - self.radius)  # the ends of a number
    hi = property(lambda self: self.parts[0] + self.radius)
    def size(self): return self.norm + self.radius
    def rise(self): return self.norm - abs(self.parts[0]) + self.radius
    def spread(self, weigh=lambda k: 1):
        """Bound |f - c_0| on the panel; with k as a weight, |t df/dt| at its ends."""
        sizes = [*map(abs, self.parts), self.tail]
        falls = [Fraction(weigh(k), REACH**k) * sizes[k] for k in range(1, len(sizes))]
        return ceil(sum(falls)) + self.radius
    def __neg__(self): return Series([-c for c in self.parts], self.radius, self.tail)
    def __add__(self, v):
        v = series(v)
        parts = [a + b for a, b in zip_longest(self.parts, v.parts, fillvalue=0)]
        return Series(parts, self.radius + v.radius, self.tail + v.tail)
    def __sub__(self, v): return self + -v
    def __rsub__(self, v): return -self + v
    def __mul__(self, v):
        v = series(v)
        if len(self.parts) == len(v.parts) == 1:  # two numbers
            a, b = self.parts[0], v.parts[0]
            error = self.radius * (abs(b) + v.radius) + v.radius * abs(a)
            return Series([a * b >> P], (error >> P) + 2)
        length, sums = max(len(self.parts), len(v.parts)), [0] * (2 * PARTS)
        for i, a in enumerate(self.parts):
            for j, b in enumerate(v.parts): sums[i + j] += a * b
        tail = self.tail * v.norm + v.tail * (self.norm - self.tail) + sum(map(abs, sums[length:]))
        radius = self.radius * (v.norm + v.radius) + v.radius * self.norm
        return Series([s >> P for s in sums[:length]], (radius >> P) + length + 1, -(-tail >> P))
    __radd__, __rmul__ = __add__, __mul__

    def expanded(self, near, first, last, growth=False):
        """Return a_0 + a_1 v + ..., v = near (f - c_0), the first four a_k being given.

        For a size s of v, terms beyond are at most s^4 g/last, their slope 4 s^3 g^2/last, and
        terms from a_1 on at most 2 s g, where g is 1/(1 - s), or with `growth` exp(s).
        """
        v, result = near * Series([0, *self.parts[1:]], self.radius, self.tail), series(first[3])
        size = v.norm + v.radius
        need(growth or size < ONE, "a panel is too wide, or a number not known to be positive")
        g = exp_of(size).hi if growth else ONE**2 // (ONE - size) + 1
        if not v.norm: return first[0] + Series([0] * len(v.parts), (2 * size * g >> P) + 1)
        for a in first[2::-1]: result = result * v + a
        tail = -(-(v.norm**4) * g // (last << 4 * P))
        radius = 4 * v.radius * size**3 * g**2 // (last << 5 * P) + 1
        return Series(result.parts, result.radius + radius, result.tail + tail)
    def reciprocal(self):
        need(self.parts[0], "a division by what may be 0")
        return Series([ONE**2 // self.parts[0]], 1)  # of c_0
    def inverse(self):
        return self.reciprocal() * self.expanded(-self.reciprocal(), [1] * 4, 1)
    def exp(self):
        near = 1, 1, Fraction(1, 2), Fraction(1, 6)
        return exp_of(self.parts[0]) * self.expanded(point(ONE), near, 24, True)
    def log(self):
        near = log_of(self.parts[0]), 1, Fraction(-1, 2), Fraction(1, 3)
        return self.expanded(self.reciprocal(), near, 4)
    def erf(self):  # |a_k| <= 5/4 2^((k - 1)/2) sqrt((k - 1)!)/k! (Cramer), below 1/2 for k > 3
        x = point(self.parts[0])
        slope = slope_of_erf(x)
        near = erf_of(self.parts[0]), slope, -slope * x, (x * x * 2 - 1) * slope * Fraction(1, 3)
        return self.expanded(point(ONE), near, 2)
    def abs(self):
        fine = len(self.parts) == 1 or abs(self.parts[0]) >= self.spread()
        need(fine, "a kink lies inside a panel")
        return self if self.parts[0] >= 0 else -self

def point(n): return Series([n])

def series(x):
    """Return a rational number as a series."""
    if isinstance(x, Series): return x
    n, d = x.numerator << P, x.denominator
    return Series([n // d], 1 if n % d else 0)

# ---- Formulas. Python's own parser reads them; the tree is walked here, and nothing is ever run.
NUMBER = re.compile(r"[-+]?[0-9]+(/0*[1-9][0-9]*|(\.[0-9]+)?([eE][-+]?[0-9]{1,4})?)")

def number(text, what):
    """Read a decimal or a ratio exactly."""
    spend(MOST_DIGITS, 2)
    short = isinstance(text, str) and len(text) <= MOST_DIGITS
    need(short and NUMBER.fullmatch(text), f"{what}: no exact number", Malformed)
    return Fraction(text)

@lru_cache(maxsize=1000)
def formula(text):
    need(isinstance(text, str) and len(text) <= MOST_TEXT, "a formula is missing or too long")
    fine = re.fullmatch(r"[A-Za-z0-9_ .+*/(),-]+", text) and not re.search(r"([-+(] *){40}", text)
    need(fine, "a formula: a sign that is not allowed, or nested too deeply")
    tree = ast.parse(text.strip(), mode="eval").body
    for node in reversed(list(ast.walk(tree))):  # the inner ones first
        inner = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        if isinstance(node, ast.Call):
            name = getattr(inner.pop(0), "id", "")
            fine = name in ("exp", "log", "erf", "Abs") and len(inner) == 1 and not node.keywords
            need(fine, f"a formula: {name[:20]} is unknown, or has not one argument")
        if isinstance(node, ast.Constant):  # its text, of which Python has made a float
            node.known = number(text.strip()[node.col_offset : node.end_col_offset], "a formula")
        elif inner and all(hasattr(part, "known") for part in inner):
            node.known = value(node, None)
    return tree

def inverted(u): return 1 / u if isinstance(u, Fraction) and u else series(u).inverse()

def value(tree, x):
    """Evaluate a formula at x: rational numbers stay exact as long as they are short."""
    op = type(getattr(tree, "op", None))
    if hasattr(tree, "known"): return tree.known
    if getattr(tree, "id", None) in ("x", "pi"): return x if tree.id == "x" else PI
    if op in (ast.USub, ast.UAdd): return value(tree.operand, x) * (-1 if op is ast.USub else 1)
    if isinstance(tree, ast.Call):
        return getattr(series(value(tree.args[0], x)), tree.func.id.lower())()
    need(op in (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow), "a formula: what is unknown")
    a, b, result = value(tree.left, x), value(tree.right, x), Fraction(1)
    if op is ast.Pow:
        if not isinstance(b, Fraction) or b.denominator > 1 or abs(b) > 64:
            return series(b * log_value(tree.left, x)).exp()
        for _ in range(abs(int(b))): result = result * a
        result = inverted(result) if b < 0 else result
    elif op in (ast.Mult, ast.Div): result = a * (b if op is ast.Mult else inverted(b))
    else: result = a + (b if op is ast.Add else -b)
    long = isinstance(result, Fraction) and result.numerator**2 + result.denominator**2 > 1 << 4000
    return series(result) if long else result

def log_value(tree, x):
    """Evaluate the logarithm of a formula, so that a density may be small beyond all units."""
    op, known = type(getattr(tree, "op", None)), getattr(tree, "known", Fraction(0))
    try:
        known = series(value(tree, x) if op is ast.Add else known)
        if ONE >> 8 < known.parts[0] < ONE << 4: return known.log()
        if op in (ast.Mult, ast.Div, ast.Add):
            u, v = log_value(tree.left, x), log_value(tree.right, x)
            return log_sum([u, v]) if op is ast.Add else u + (v if op is ast.Mult else -v)
        if op is ast.Pow: return value(tree.right, x) * log_value(tree.left, x)
        if isinstance(tree, ast.Call) and tree.func.id == "exp": return value(tree.args[0], x)
    except Refused:  # a part may be 0, or negative
        pass
    return series(value(tree, x)).log()

def log_sum(us):
    """Return log(exp(u) + exp(v) + ...), the largest term taken out."""
    most, *others = sorted(map(series, us), key=lambda u: -u.parts[0])
    return most + sum(((u - most).exp() for u in others), point(ONE)).log() if others else most

# ---- One step.
def listed(told, key, length=None):
    found = told.get(key)
    need(isinstance(found, list) and length in (None, len(found)), f"{key}: no list", Malformed)
    return found

def whole(told, key, least, most):
    found = number(told.get(key), key)
    need(int(found) == found and least <= found <= most, f"{key}: out of range", Malformed)
    return int(found)

def rule_of(told):
    """Read nodes and weights on [-1, 1], and bound their errors at powers below twice as many."""
    rule = [(number(t, "a node"), number(w, "a weight")) for t, w in listed(told, "rule")]
    fine = len(rule) <= MOST_DIGITS and all(abs(t) <= 1 and w > 0 for t, w in rule)
    need(fine, "rule: too long, a node outside, or a weight <= 0")
    gap, terms = 0, [series(w) for _, w in rule]
    for m in range(2 * len(rule)):
        off = sum(terms, series(Fraction(-2, m + 1) if m % 2 == 0 else 0))
        gap, terms = max(gap, off.size()), [v * t for v, (t, _) in zip(terms, rule)]
    return rule, gap

class Step:
    """Laws P = sum p_i f_i and Q = sum q_i f_i of a step, and the nodes of its integrals."""
    def __init__(self, told, hint, rule, swapped):
        self.count = whole(told, "count", 1, MOST_COUNT)
        self.scale, laws = number(hint.get("scale"), "scale"), listed(told, "laws")
        p, q = ([number(w, "a weight") for w in listed(told, key, len(laws))] for key in "pq")
        need(min(p + q) >= 0 and sum(p) == sum(q) == 1, "weights are not >= 0 with sum 1")
        logs = [[w and series(w).log() for w in weights] for weights in (p, q)]
        self.weights, support = logs[::-1] if swapped else logs, told.get("support")
        self.nodes, self.panels, self.rows, (self.rule, self.gap) = [], [], [], rule
        if support not in ("points", "integers"):
            self.laws = [formula(text) for text in laws]
            ends = zip(listed(told, "support", 2), ("-oo", "oo"))
            self.lay(hint, *([] if e == i else [number(e, "an end")] for e, i in ends))
            return
        is_list = support == "points"  # a node is a point
        need(all(isinstance(law, list) == is_list for law in laws), "laws: lists?", Malformed)
        ends = ("0", str(max(map(len, laws)) - 1)) if is_list else listed(hint, "range", 2)
        first, last = (int(number(k, "range")) for k in ends)
        for k in range(first, last + 1):
            self.laws = [formula(law[k] if is_list else law) for law in laws]
            logs = self.logs(series(k))
            self.nodes += [(point(ONE), *logs)] if logs else []

    def lay(self, hint, first, last):
        """Lay panels between neighbours of rising lists, nodes on them; cut each into cells."""
        lists = [[number(x, "panels") for x in xs] for xs in listed(hint, "panels")]
        every = sum(lists, first) + last
        need(every == sorted(every), "panels that overlap, or lie outside of the support")
        for xs, count in zip(lists, listed(hint, "cells", len(lists))):
            cut = whole({"cells": count}, "cells", 0, MOST_COUNT)
            panels = [self.panel(x, y) for x, y in zip(xs, xs[1:])]
            self.nodes += [(series(w * r), *self.logs(series(m + r * t)))
                           for m, r, _, _ in panels for t, w in self.rule]
            ends = [x + (y - x) * Fraction(k, cut) for x, y in zip(xs, xs[1:]) for k in range(cut)]
            ends.append(xs[-1])
            cells = [self.panel(x, y) for x, y in zip(ends, ends[1:])]
            self.rows.append((cells, [self.logs(series(x))[1] for x in ends]))
            self.panels += panels

    def panel(self, x, y):
        """Return the middle, half the width, log p and the loss as series."""
        need(x < y, "an empty panel")
        middle, radius = (x + y) / 2, (y - x) / 2
        return middle, radius, *self.logs(middle + Series([0, ONE, 0, 0]) * (radius * REACH))

    def logs(self, x):
        """Return log p and the loss; None where one of the laws is 0."""
        p, q = ([w + log_value(law, x) + x * 0 for w, law in zip(weights, self.laws)
                 if w and getattr(law, "known", 1) != 0] for weights in self.weights)
        return (log_sum(p), log_sum(p) - log_sum(q)) if p and q else None

    def measure(self, tilt, height):
        """Return W_j and an error: |e^-scale M(tilt + iy) - sum W_j e^(iy loss_j)|, |y| <= height.

        The integrand is exp of a series u in t; its coefficients are below those of exp(|u_0| +
        |u_1| t + ...). On the panel, |t| <= 1/REACH, its terms from degree 2N on add up to at most
        that at t = 1 over REACH^2N. N nodes integrate the others, but for their moments' error.
        """
        tilt, scale = series(tilt), series(self.scale)
        error, share = Fraction(0), 5 * ONE // REACH ** (2 * len(self.rule)) + self.gap + 6
        for _, radius, log_p, loss in self.panels:
            u = log_p + loss * tilt - scale
            most = u + point(u.rise()) + height * point(loss.rise())
            error += exp_of(most.hi).hi * share * radius / ONE
        return [w * (u + v * tilt - scale).exp() for w, u, v in self.nodes], int(error) + 1

    def total(self, tilt):
        """Enclose M at a real point, times e^-scale."""
        weights, error = self.measure(tilt, point(0))
        return sum(weights, Series([0], error))

    def snap(self, spacing, offset):
        """Put losses on a lattice, and return by how much those of all steps move at most."""
        moved = 0
        for i, (w, log_p, loss) in enumerate(self.nodes):
            near = offset + round((Fraction(loss.lo, ONE) - offset) / spacing) * spacing
            self.nodes[i], moved = (w, log_p, series(near)), max(moved, (loss - near).size())
        return point(moved) * self.count

    def density(self, cell, tilt):
        """Return a lower bound of p e^(tilt loss - scale)/|loss'| on a cell, in units."""
        _, radius, log_p, loss = cell
        u = log_p + loss * tilt - self.scale
        least = max(0, exp_of(u.parts[0] - u.spread()).lo)
        return int(least * radius / (loss.spread(lambda k: k) + 1) * ONE)

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
            least = [self.density(cell, tilt) for cell in cells]
            rows = [(0, len(cells), 0)]
            for i, j, base in rows:  # to which rows are added
                spend(0, j - i)
                if i == j: continue
                low = min(range(i, j), key=least.__getitem__)
                width = point(max(0, (losses[j] - losses[i]).abs().lo))
                v = point((height * width).lo // 2)
                falls = v * v * (v * v * Fraction(-1, 120) + Fraction(1, 6))
                falls = falls if v.hi <= 2 * ONE else 1 - v.inverse()
                result += point(least[low] - base) * width * falls
                rows += [(i, low, least[low]), (low + 1, j, least[low])]
        return result

# ---- All steps.
def enclose(told, side, epsilon):
    """Return a unit and two numbers: in these units, delta is from the first to the second."""
    hint, rule = told["witness"][side], rule_of(told["witness"])
    hints = listed(hint, "steps", len(listed(told, "steps")))
    steps = [Step(one, own, rule, side == "add") for one, own in zip(told["steps"], hints)]
    tilt, terms = number(hint.get("tilt"), "tilt"), whole(hint, "terms", 1, MOST_WORK)
    spacing = number(hint.get("spacing", "0"), "spacing")  # of a lattice
    period = spacing * terms or number(hint.get("period"), "period")
    need(tilt > 0 and period > 0 and steps, "tilt and period must be positive, and some steps told")
    # Outside the panels. A law has mass 1: what it has not on the panels lies elsewhere, where the
    # loss counts as infinite above and is left out below. Nothing of the tails has to be known.
    outside = others = point(0)
    for step in steps:
        p, q = (step.total(Fraction(t)) * series(step.scale).exp() for t in (0, -1))
        need(p.lo <= ONE and q.lo <= ONE, "a law has a mass above 1")
        outside += point(ONE - p.lo) * step.count
    # On a lattice, offset + spacing times whole numbers, all losses move there; g rises by no more.
    base, moved = epsilon, point(0)
    if spacing:
        base = Fraction(0)
        for step, own in zip(steps, hints):
            need(not step.panels, "spacing: a law has a density")
            offset = number(own.get("offset"), "offset")
            moved, base = moved + step.snap(spacing, offset), base + step.count * offset
        base += spacing * ((epsilon - base) // spacing + 1)  # the first possible sum above epsilon
    # By Poisson's formula for s -> e^(-as) E g(S - epsilon + s), a > 0, whose transform is
    # M(z) e^(-epsilon z)/(z (z + 1)) on Re z = a: with z_k = a + 2 pi i k/period,
    #   1/period sum_k M(z_k) e^(-epsilon z_k)/(z_k (z_k + 1))
    #     = sum_m e^(-a m period) E g(S - epsilon + m period).
    # No term on the right is negative, and the one of m = 0 is delta: the sum is an upper bound.
    # On a lattice M is periodic; the sum over z + 2 pi i l/spacing of e^(-epsilon z)/(z (z + 1)) is
    # spacing e^(-bz) (A(z) - e^(epsilon - b) A(z + 1)), b = base, A(z) = 1/(1 - e^(-spacing z)).
    first, bound, lines = PI * (2 / period), point(ONE), []
    for step in steps:
        weights, error = step.measure(tilt, first * terms)
        rest = sum(weights, point(error)) - step.gain(tilt, first * (terms + 1))
        bound *= (log_of(rest.hi) * step.count).exp()
        values = [(w.parts[0], 0, w.radius) for w in weights]
        lines.append((step.count, error, values, [turn(first * loss) for _, _, loss in step.nodes]))
    result, shift, place = point(0), turn(first * -base), (ONE, 0, 0)
    falls = [series(x).exp() for x in (-tilt * spacing, -(tilt + 1) * spacing, epsilon - base)]
    for k in range(terms // 2 + 1 if spacing else terms + 1):
        re, im = kernel(tilt, first * k, spacing, *falls)
        term = times(place, (re.parts[0], im.parts[0], re.radius + im.radius))
        for count, error, values, turns in lines:
            a, b, radius = map(sum, zip(*values))
            term = times(term, raised((a, b, radius + error), count))
            values[:] = map(times, values, turns)
        twice = 1 if k == 0 or (spacing and 2 * k == terms) else 2
        result += Series([term[0]], term[2]) * twice
        place = times(place, shift)
    # All of it is in units of e^(scales - a base)/period.
    unit = series(tilt * base - sum(step.count * step.scale for step in steps)).exp() * period
    # Beyond, |M| is at most the bound, and the sum at most that times 2/(first^2 terms).
    beyond = moved * unit if spacing else bound * (first * first).inverse() * Fraction(2, terms)
    # The terms of m != 0: g(s) <= e^(bs) for b >= 0 makes them two geometric series.
    for key, sign in (("below", 1), ("above", -1)):
        b = number(hint.get(key), key)
        need(b >= 0 and (tilt - b) * sign > 0, f"{key}: on the wrong side of the tilt")
        log_fall = -abs(tilt - b) * period
        log_size = series(tilt * base - b * epsilon + log_fall)
        for step in steps: log_size += log_of(step.total(b).hi) * step.count
        others += log_size.exp() * (1 - series(log_fall).exp()).inverse()
    return unit, result - beyond - others * period, result + beyond + outside * unit

# ---- Shuffled answers.
def shuffled(told, epsilon):
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
    n, laws = whole(told, "people", 2, MOST_COUNT), listed(told, "laws")
    laws = [[number(mass, "a mass") for mass in listed({"law": law}, "law", len(laws[0]))]
            for law in laws]
    need(all(min(law) >= 0 and sum(law) == 1 for law in laws), "a law is not >= 0 with sum 1")
    least, kinds, bound = list(map(min, zip(*laws))), {}, point(0)
    for i, p in enumerate(laws):
        spend(len(p), len(laws))
        for j, q in enumerate(laws):
            if i != j: kinds.setdefault(tuple(sorted(zip(p, q, least))), f"{i} {j}")
    for outcomes, pair in kinds.items():
        hint = told["plans"].get(pair)
        need(hint, "a pair of laws has no plan")
        end = of_pair(outcomes, n, epsilon, hint)
        bound = bound if bound.hi >= end.hi else end
    return bound

def of_pair(outcomes, n, epsilon, hint):
    """Bound the delta of one pair of laws, told as triples p, q, w."""
    t, period, blur = (number(hint.get(key), key) for key in ("tilt", "period", "blur"))
    terms, growth, apart = whole(hint, "terms", 0, MOST_WORK), series(epsilon).exp(), point(0)
    need(t > 0 and period > 0 and blur > 0, "tilt, period and blur must be positive")
    first, atoms = PI * (2 / period), []
    for p, q, w in outcomes:
        if w: atoms.append((w, series(p / w) - growth * (q / w)))
        elif (p - growth * q).hi > 0: apart += point((p - growth * q).hi)
    weights = [(x * t).exp() * w for w, x in atoms]
    left = series(1 - sum(w for w, _ in atoms))
    highest = sum(weights, left)
    top = (log_of(highest.hi) * n).exp()
    if not terms: return top * (series(1).exp() * n * t).inverse() + apart
    values = [(weight.parts[0], 0, weight.radius) for weight in weights]
    turns, result = [turn(first * x) for _, x in atoms], point(0)
    for k in range(terms + 1):
        a, b, radius = map(sum, zip(*values, (left.parts[0], 0, left.radius)))
        y = first * k
        fall = ((t * t - y * y) * (blur * blur / 2)).exp()
        re, im = inverse_of(t * t - y * y, y * (2 * t))
        term = times(raised((a, b, radius), n), turn(y * (blur * blur * t)))
        term = times(term, (re.parts[0], im.parts[0], re.radius + im.radius))
        result += Series([term[0]], term[2]) * fall * (2 if k else 1)
        values[:] = map(times, values, turns)
    y = first * (terms + 1)
    beyond = ((t * t - y * y) * (blur * blur / 2)).exp() * (first * first).inverse()
    return (result + top * beyond * Fraction(2, terms)) * (1 / (period * n)) + apart

def kernel(a, y, spacing, fall, next_fall, gap):
    """Return 1/(z (z + 1)) at z = a + iy; on a lattice, spacing (A(z) - e^gap A(z + 1))."""
    if not spacing: return inverse_of(a * (a + 1) - y * y, y * (2 * a + 1))
    re, im, radius = turn(y * spacing)
    re, im = Series([re], radius), Series([im], radius)
    parts = [inverse_of(1 - c * re, c * im) for c in (fall, next_fall)]
    return [(u - gap * v) * spacing for u, v in zip(*parts)]

def inverse_of(re, im):
    square = (re * re + im * im).inverse()
    return re * square, -im * square

def check(told):
    """Prove the claim, or raise Refused."""
    set_units(64)
    need(told.get("format") == FORMAT, f"its format is not '{FORMAT}'; symdp certify "
         "--certificate FILE writes one", Malformed)
    claim = told["claim"]
    set_units(whole(told["witness"], "bits", 64, MOST_BITS))
    epsilon, lower, upper = (number(claim.get(key), key) for key in ("epsilon", "lower", "upper"))
    if "shuffled" in told:
        need(epsilon >= 0 == lower, "of shuffled answers no lower end is proved", Malformed)
        plans = {"plans": told["witness"]["plans"]}
        end = shuffled({**told["shuffled"], **plans}, epsilon)
        need(end.hi <= series(upper).lo, "the upper end is not proved")
        return (f"delta({claim['epsilon']}) <= {claim['upper']} for shuffled answers of people, "
                f"each by one of the laws: {json.dumps(told['shuffled'])}")
    whom = {"remove": "P against Q", "add": "Q against P", "both": "P against Q and Q against P"}
    direction, reached = claim.get("direction"), lower == 0
    need(0 <= lower <= upper <= 1 and direction in whom, "no interval in [0, 1], or direction")
    for side in ("remove", "add") if direction == "both" else (direction,):
        unit, low, high = enclose(told, side, epsilon)
        need(high.hi <= (upper * unit).lo, f"{side}: the upper end is not proved")
        reached = reached or low.lo >= (lower * unit).hi
    need(reached, "the lower end is not proved")
    return (f"{claim['lower']} <= delta({claim['epsilon']}) <= {claim['upper']} for the laws of "
            f"{whom[direction]}, of mass 1, and all they dominate: {json.dumps(told['steps'])}")

def keyed(pairs):
    """Of two values of one key, a person may read the one and this program the other."""
    need(len(dict(pairs)) == len(pairs), "a key is there twice", Malformed)
    return dict(pairs)

def main(path):
    try:
        with open(path, "rb") as file: data = file.read(MOST_BYTES + 1)
        need(len(data) <= MOST_BYTES, f"it has more than {MOST_BYTES} bytes", Malformed)
        told = json.loads(data.decode(), parse_int=str, parse_float=str, parse_constant=str,
                          object_pairs_hook=keyed)
        need(type(told) is dict, "it holds no object with steps and a claim", Malformed)
        print("proved:", check(told))
    except (Refused, OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError,
            SyntaxError, MemoryError) as error:
        kind, code = ("refused:", 1) if type(error) is Refused else ("not a certificate:", 2)
        if isinstance(error, json.JSONDecodeError):
            error = ValueError(f"no JSON ({error}); symdp certify --certificate FILE writes one")
        words = str(error) if isinstance(error, (Refused, OSError, ValueError, MemoryError)) else \
            "an entry is missing, or is not of the kind that a certificate has there"
        print(kind, " ".join(words.split())[:200] or type(error).__name__, file=sys.stderr)
        sys.exit(code)

if __name__ == "__main__": main(sys.argv[1])
