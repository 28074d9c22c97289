"""Check a certificate of delta(epsilon). Integers decide; nothing but Python is needed.

    python check_certificate.py FILE.json

A certificate names two laws P and Q of each step's output, the numbers of steps, an epsilon and two
ends of delta. With the loss L = log(p(X)/q(X)), X drawn from P, and S the sum of all losses,

    delta(epsilon) = E g(S - epsilon),   g(s) = max(0, 1 - exp(-s)),   M(z) = E exp(zL).

What is no claim is a witness: it says where to look, and none of it is believed. The parts of the
proof stand as comments where they are computed: numbers, series, formulas, one step, all steps.
"""

# fmt: off
import ast, json, re, sys
from fractions import Fraction
from functools import lru_cache
from math import isqrt

# Most bytes of a file; signs of a formula and a number; bits asked for, and of any number; steps;
# and bits of all numbers made, beyond which nothing is proved, so that no file takes for ever.
MOST_BYTES, MOST_TEXT, MOST_DIGITS, MOST_BITS, MOST_SIZE = 200000, 4000, 300, 2048, 1 << 15
MOST_COUNT, MOST_WORK = 10**12, 10**9
GUARD, PARTS = 64, 4  # bits carried inside a function beyond its result's; listed parts of a series

class Refused(Exception):
    """The first thing that is not proved."""

class Malformed(Refused):
    """What is no certificate at all."""

def need(proved, what, error=Refused):
    if not proved: raise error(what)

def spend(bits, numbers=1):
    global LEFT
    LEFT -= (bits + 64) * numbers
    need(bits < MOST_SIZE, "a number is too large")
    need(LEFT > 0, "too much work")

# ---- Numbers: intervals of integers in units of 2^-P. Every operation rounds outwards.
def set_units(bits, reach):
    global P, W, ONE, LN2, HALF_TURN, PI, REACH, LEFT
    P, W, ONE, REACH, LEFT = bits, bits + GUARD, 1 << bits, reach, MOST_WORK
    unit = 1 << (W + 16)

    def series(inverse, sign):  # 1/inverse + sign/(3 inverse^3) + ...: a term loses < 3 units
        terms = range((W + 20) // (inverse.bit_length() - 1))
        return sum(sign**i * (unit // inverse ** (2 * i + 1) // (2 * i + 1)) for i in terms)

    LN2 = 2 * series(3, 1) >> 16  # artanh, and Machin's arctan: to 2 units of 2^-W
    HALF_TURN = 4 * (4 * series(5, -1) - series(239, -1)) >> 16
    PI = Real((HALF_TURN >> GUARD) - 1, (HALF_TURN >> GUARD) + 2)
    exp_of.cache_clear(), log_of.cache_clear(), formula.cache_clear()

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
    """Return integers below and above 2^P exp(x/2^P)."""
    need(x < ONE << 16, "a number is too large")
    x = max(x, -(2 * P + 200) * ONE)  # there the ends are 0 and 1 unit
    k, r = divmod(x << GUARD, LN2)  # x = k log 2 + r, r to 2|k| + 1 < 2^19 units
    result, left, right = sum(powers(r >> 8)), max(k - GUARD, 0), max(GUARD - k, 0)
    for _ in range(8): result = result * result >> W  # of a number below 2: errors fourfold
    low, high = result - (1 << 32), result + (1 << 32)  # (2^11 + 2^10) 4^8 < 2^32
    return max(0, low << left >> right), (high << left >> right) + 1

@lru_cache(maxsize=10000)
def log_of(x):
    """Return integers below and above 2^P log(x/2^P)."""
    need(x > 0, "a logarithm of what may not be positive")
    spend(W, 16)
    e = x.bit_length() - 1
    m = x << (W - e) if W >= e else x >> (e - W)  # in [1, 2), to a unit
    for _ in range(4): m = isqrt(m << W)  # in [1, 1.05): a sixteenth of its log
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
    # Squaring makes an error at most fourfold: 2^37 4^8 < 2^GUARD.
    for _ in range(8): re, im = (re * re - im * im) >> W, 2 * re * im >> W
    return re >> GUARD, im >> GUARD, (angle.hi - angle.lo) // 2 + 4

def times(a, b):
    re, im = (a[0] * b[0] - a[1] * b[1]) >> P, (a[0] * b[1] + a[1] * b[0]) >> P
    size, other = isqrt(a[0] ** 2 + a[1] ** 2) + 1, isqrt(b[0] ** 2 + b[1] ** 2) + 1
    spend(max(size, other).bit_length())
    return re, im, (((size + a[2]) * b[2] + other * a[2]) >> P) + 3

def raised(a, n):
    half = raised(a, n // 2) if n > 1 else (ONE, 0, 0)
    return times(times(half, half), a) if n % 2 else times(half, half)

class Real:
    """All numbers between lo/2^P and hi/2^P."""
    def __init__(self, lo, hi): self.lo, self.hi = lo, hi; spend(max(-lo, hi).bit_length())
    def __neg__(self): return Real(-self.hi, -self.lo)
    def exp(self): return Real(exp_of(self.lo)[0], exp_of(self.hi)[1])
    def log(self): return Real(log_of(self.lo)[0], log_of(self.hi)[1])
    def erf(self): return Real(erf_of(self.lo).lo, erf_of(self.hi).hi)
    def size(self): return max(-self.lo, self.hi)
    def abs(self): return self if self.lo >= 0 else -self if self.hi <= 0 else Real(0, self.size())
    def __add__(self, v): return v + self if isinstance(v, Jet) else joined(self, real(v))
    def __mul__(self, v): return v * self if isinstance(v, Jet) else dot([self], [real(v)])
    def inverse(self):
        need(self.lo > 0 or self.hi < 0, "a division by what may be 0")
        return Real(ONE**2 // self.hi, -(-(ONE**2) // self.lo))
    __radd__, __rmul__ = __add__, __mul__

def real(x):
    """Return a rational number as the interval around it."""
    if isinstance(x, Real): return x
    n, d = x.numerator << P, x.denominator
    return Real(n // d, -(-n // d))

def dot(us, vs):
    low = high = 0
    for u, v in zip(us, vs):
        ends = (u.lo * v.lo, u.lo * v.hi, u.hi * v.lo, u.hi * v.hi)
        low, high = low + min(ends), high + max(ends)
    return Real(low >> P, -(-high >> P))

def joined(u, v): return Real(u.lo + v.lo, u.hi + v.hi)
def point(n): return Real(n, n)
def slope_of_erf(): return (PI.log() * Fraction(-1, 2)).exp() * 2  # 2/sqrt(pi)

def erf_of(x):
    """Enclose erf: 2/sqrt(pi) exp(-x^2) (x + 2x^3/3 + 4x^5/15 + ...), terms of one sign."""
    if x < 0: return -erf_of(-x)
    square, result, term, i = point(x) * point(x), point(x), point(x), 3
    outside = (-square).exp()
    if outside.hi <= 2: return Real(ONE - 2, ONE)  # 1 - erf(x) < exp(-x^2)
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
    def __add__(self, v):
        v = v if isinstance(v, Jet) else constant(v)
        return Jet([joined(*both) for both in zip(self.parts, v.parts)], self.tail + v.tail)
    def __mul__(self, v):
        v = v if isinstance(v, Jet) else constant(v)
        a, b, beyond = self.parts, v.parts, 0
        tail = self.tail * (v.rise() + b[0].size()) + v.tail * sum(u.size() for u in a)
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

def constant(u): return Jet([real(u), *[point(0)] * (PARTS - 1)])

def inverse_parts(u):  # u v = 1
    v = [u[0].inverse()]
    for k in range(1, PARTS): v.append(-(v[0] * dot(u[1 : k + 1], v[::-1])))
    return v

def chained(u, slope, first):  # v' = slope u'; without a slope, v' = v u'
    weighted, v = [w * k for k, w in enumerate(u)], [first]
    for k in range(1, PARTS):
        v.append(dot(weighted[1 : k + 1], (slope or v)[k - 1 :: -1]) * Fraction(1, k))
    return v

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

def inverted(u): return 1 / u if isinstance(u, Fraction) and u else lifted(u).inverse()
def lifted(u): return real(u) if isinstance(u, Fraction) else u

def value(tree, x):
    """Evaluate a formula at x: rational numbers stay exact as long as they are short."""
    op = type(getattr(tree, "op", None))
    if hasattr(tree, "known"): return tree.known
    if getattr(tree, "id", None) in ("x", "pi"): return x if tree.id == "x" else PI
    if op in (ast.USub, ast.UAdd): return value(tree.operand, x) * (-1 if op is ast.USub else 1)
    if isinstance(tree, ast.Call):
        return getattr(lifted(value(tree.args[0], x)), tree.func.id.lower())()
    need(op in (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow), "a formula: what is unknown")
    a, b, result = value(tree.left, x), value(tree.right, x), Fraction(1)
    if op is ast.Pow:
        if not isinstance(b, Fraction) or b.denominator > 1 or abs(b) > 64:
            return lifted(b * log_value(tree.left, x)).exp()
        for _ in range(abs(int(b))): result = result * a
        result = inverted(result) if b < 0 else result
    elif op in (ast.Mult, ast.Div): result = a * (b if op is ast.Mult else inverted(b))
    else: result = a + (b if op is ast.Add else -b)
    long = isinstance(result, Fraction) and result.numerator**2 + result.denominator**2 > 1 << 4000
    return real(result) if long else result

def log_value(tree, x):
    """Evaluate the logarithm of a formula, so that a density may be small beyond all units."""
    op, known = type(getattr(tree, "op", None)), lifted(getattr(tree, "known", Fraction(0)))
    try:
        known = lifted(value(tree, x)) if op is ast.Add else known
        if ONE >> 8 < (known.parts[0] if isinstance(known, Jet) else known).lo < ONE << 4:
            return known.log()
        if op in (ast.Mult, ast.Div, ast.Add):
            u, v = log_value(tree.left, x), log_value(tree.right, x)
            return log_sum([u, v]) if op is ast.Add else u + (v if op is ast.Mult else -v)
        if op is ast.Pow: return value(tree.right, x) * log_value(tree.left, x)
        if isinstance(tree, ast.Call) and tree.func.id == "exp": return value(tree.args[0], x)
    except Refused:  # a part may be 0, or negative
        pass
    return lifted(value(tree, x)).log()

def log_sum(us):
    """Return log(exp(u) + exp(v) + ...), the largest term taken out."""
    most = max(us, key=lambda u: (u.parts[0] if isinstance(u, Jet) else real(u)).lo)
    return most + sum((lifted(u + -most).exp() for u in us), Fraction(0)).log()

# ---- One step.
def listed(told, key, length=None):
    found = told.get(key)
    need(isinstance(found, list) and length in (None, len(found)), f"{key}: no list", Malformed)
    return found

def whole(told, key, least, most):
    found = number(told.get(key), key)
    need(int(found) == found and least <= found <= most, f"{key}: out of range", Malformed)
    return int(found)

class Step:
    """Laws P = sum p_i f_i and Q = sum q_i f_i of a step, and the nodes of its integrals."""
    def __init__(self, told, hint, swapped):
        self.count = whole(told, "count", 1, MOST_COUNT)
        self.scale, laws = number(hint.get("scale"), "scale"), listed(told, "laws")
        p, q = ([number(w, "a weight") for w in listed(told, key, len(laws))] for key in "pq")
        need(min(p + q) >= 0 and sum(p) == sum(q) == 1, "weights are not >= 0 with sum 1")
        self.weights, support = (q, p) if swapped else (p, q), told.get("support")
        self.gap = self.order = 0
        self.nodes, self.panels, self.cells, self.layers = [], [], [], []
        if support in ("points", "integers"):  # a node is a point
            is_list = support == "points"
            need(all(isinstance(law, list) == is_list for law in laws), "laws: lists?", Malformed)
            ends = ("0", str(max(map(len, laws)) - 1)) if is_list else listed(hint, "range", 2)
            first, last = (int(number(k, "range")) for k in ends)
            for k in range(first, last + 1):
                self.laws = [formula(law[k] if is_list else law) for law in laws]
                logs = self.logs(real(Fraction(k)))
                self.nodes += [(point(ONE), *logs)] if logs else []
            return
        self.laws = [formula(text) for text in laws]
        ends = zip(listed(told, "support", 2), ("-oo", "oo"))
        ends = [None if e == i else number(e, "an end") for e, i in ends]
        # Nodes and positive weights on [-1, 1] that integrate degrees below 2N, but for an error.
        rule = [(number(t, "a node"), number(w, "a weight")) for t, w in listed(hint, "rule")]
        fine = len(rule) <= MOST_DIGITS and all(abs(t) <= 1 and w > 0 for t, w in rule)
        need(fine, "rule: too long, a node outside, or a weight <= 0")
        self.order, terms = 2 * len(rule), [real(w) for _, w in rule]
        for m in range(self.order):
            gap = sum(terms, real(Fraction(-2, m + 1) if m % 2 == 0 else Fraction(0)))
            self.gap, terms = max(self.gap, gap.size()), [v * t for v, (t, _) in zip(terms, rule)]
        self.panels, spans = self.pieces(hint, "panels", [ends])
        self.cells, self.layers = self.pieces(hint, "cells", spans)[0], listed(hint, "layers")
        self.nodes = [(real(w * radius), *self.logs(real(middle + radius * t)))
                      for middle, radius, _, _ in self.panels for t, w in rule]

    def pieces(self, hint, key, spans):
        """Return intervals between neighbours of rising lists within spans, and the lists."""
        found, lists = [], [[number(x, key) for x in group] for group in listed(hint, key)]
        for xs, before in zip(lists, [None, *lists]):
            inside = (all(e is None or sign * (x - e) >= 0 for e, x, sign in zip(
                (span[0], span[-1]), (xs[0], xs[-1]), (1, -1))) for span in spans)
            need(any(inside), f"{key} outside of the support or of panels")
            need(before is None or before[-1] <= xs[0], f"{key} that overlap")
            for x, y in zip(xs, xs[1:]):
                need(x < y, f"{key} that do not rise")
                middle, radius = (x + y) / 2, (y - x) / 2
                parts = [real(middle), real(radius * REACH), *[point(0)] * (PARTS - 2)]
                found.append((middle, radius, *self.logs(Jet(parts))))
        return found, lists

    def logs(self, x):
        """Return log p and the loss; None where one of the laws is 0."""
        p, q = ([real(w).log() + log_value(law, x) + x * 0 for w, law in zip(weights, self.laws)
                 if w and getattr(law, "known", 1) != 0] for weights in self.weights)
        return (log_sum(p), log_sum(p) + -log_sum(q)) if p and q else None

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

    def snap(self, spacing, offset):
        """Put losses on a lattice, and return by how much those of all steps move at most."""
        moved = 0
        for i, (w, log_p, loss) in enumerate(self.nodes):
            near = offset + round((Fraction(loss.lo, ONE) - offset) / spacing) * spacing
            self.nodes[i], moved = (w, log_p, real(near)), max(moved, (loss + -near).size())
        return point(moved) * self.count

    def density(self, cell, tilt):
        """Return a lower bound of p e^(tilt loss - scale)/|loss'| on a cell, in units."""
        u = cell[2] + cell[3] * tilt
        least = exp_of(u.parts[0].lo - u.spread() - real(self.scale).hi)[0]
        return int(least * cell[1] / cell[3].spread(lambda k: k) * ONE)

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
            c, cells = int(number(one[2], "layer") * ONE), self.cells[i:j]
            spend(P, 16 * (j - i))
            whole_one = all(a[0] + a[1] == b[0] - b[1] for a, b in zip(cells, cells[1:]))
            need(i < j and c >= 0 and whole_one, "a layer that is empty, or has a gap")
            x, y = cells[0][0] - cells[0][1], cells[-1][0] + cells[-1][1]
            width = point((self.logs(real(y))[1] + -self.logs(real(x))[1]).abs().lo)
            v = point((height * width).lo // 2)
            sinc = 1 + v * v * (v * v * Fraction(1, 20) + -1) * Fraction(1, 6)
            sinc = sinc if v.hi <= 2 * ONE else v.inverse()
            result, used[i:j] = result + point(c) * width * (1 + -sinc), [d + c for d in used[i:j]]
        for c, cell in zip(used, self.cells):
            need(c <= self.density(cell, tilt), "a layer is higher than the density")
        return result

# ---- All steps.
def enclose(told, hint, swapped, epsilon):
    """Return a unit and two Reals: in these units, delta is from the first to the second."""
    hints = listed(hint, "steps", len(listed(told, "steps")))
    steps = [Step(one, own, swapped) for one, own in zip(told["steps"], hints)]
    tilt, period = number(hint.get("tilt"), "tilt"), number(hint.get("period"), "period")
    terms = whole(hint, "terms", 1, MOST_WORK)
    need(tilt > 0 and period > 0 and steps, "tilt and period must be positive, and some steps told")
    # Outside the panels. A law has mass 1: what it has not on the panels lies elsewhere, where the
    # loss counts as infinite above and is left out below. Nothing of the tails has to be known.
    outside = others = point(0)
    for step in steps:
        p, q = (step.total(Fraction(t)) * real(step.scale).exp() for t in (0, -1))
        need(p.lo <= ONE and q.lo <= ONE, "a law has a mass above 1")
        outside = outside + Real(0, (1 + -p).hi) * step.count
    # On a lattice, offset + spacing times whole numbers, all losses move there; g rises by no more.
    base, moved, spacing = epsilon, point(0), number(hint.get("spacing", "0"), "spacing")
    if spacing:
        need(spacing > 0 and period == spacing * terms, "spacing: not period over terms")
        base = Fraction(0)
        for step, own in zip(steps, hints):
            need(not step.panels, "spacing: a law has a density")
            moved = moved + step.snap(spacing, number(own.get("offset"), "offset"))
            base += step.count * number(own["offset"], "offset")
        base += spacing * ((epsilon - base) // spacing + 1)  # the first possible sum above epsilon
    # Fact 1. By Poisson's formula for s -> e^(-as) E g(S - epsilon + s), a > 0, whose transform is
    # M(z) e^(-epsilon z)/(z (z + 1)) on Re z = a: with z_k = a + 2 pi i k/period,
    #   1/period sum_k M(z_k) e^(-epsilon z_k)/(z_k (z_k + 1))
    #     = sum_m e^(-a m period) E g(S - epsilon + m period).
    # No term on the right is negative, and the one of m = 0 is delta: the sum is an upper bound.
    # On a lattice M is periodic; the sum over z + 2 pi i l/spacing of e^(-epsilon z)/(z (z + 1)) is
    # spacing e^(-bz) (A(z) - e^(epsilon - b) A(z + 1)), b = base, A(z) = 1/(1 - e^(-spacing z)).
    first, bound, lines = PI * (2 / period), point(ONE), []
    for step in steps:
        weights, error = step.measure(tilt, first * terms)
        rest = sum(weights, point(error)) + -step.gain(tilt, first * (terms + 1))
        bound = bound * (point(rest.hi).log() * step.count).exp()
        values = [((w.lo + w.hi) // 2, 0, (w.hi - w.lo) // 2 + 1) for w in weights]
        lines.append((step.count, error, values, [turn(first * loss) for _, _, loss in step.nodes]))
    result, shift, place = point(0), turn(first * -base), (ONE, 0, 0)
    for k in range(terms // 2 + 1 if spacing else terms + 1):
        re, im = (on_lattice if spacing else on_line)(tilt, first * k, spacing, epsilon - base)
        term = times(place, (re.lo, im.lo, re.hi - re.lo + im.hi - im.lo))
        for count, error, values, turns in lines:
            a, b, radius = map(sum, zip(*values))
            term = times(term, raised((a, b, radius + error), count))
            values[:] = map(times, values, turns)
        twice = 1 if k == 0 or (spacing and 2 * k == terms) else 2
        result = result + Real(term[0] - term[2], term[0] + term[2]) * twice
        place = times(place, shift)
    # All of it is in units of e^(scales - a base)/period.
    unit = real(tilt * base - sum(step.count * step.scale for step in steps)).exp() * period
    # Fact 2. Beyond, |M| is at most the bound, and the sum at most that times 2/(first^2 terms).
    beyond = moved * unit if spacing else bound * (first * first).inverse() * Fraction(2, terms)
    # The terms of m != 0: g(s) <= e^(bs) for b >= 0 makes them two geometric series.
    for key, sign in (("below", 1), ("above", -1)):
        b = number(hint.get(key), key)
        need(b >= 0 and (tilt - b) * sign > 0, f"{key}: on the wrong side of the tilt")
        log_fall = -abs(tilt - b) * period
        log_size = real(tilt * base - b * epsilon + log_fall)
        for step in steps:
            log_size = log_size + point(step.total(b).hi).log() * step.count
        others = others + log_size.exp() * (1 + -real(log_fall).exp()).inverse()
    return unit, result + -beyond + -(others * period), result + beyond + outside * unit

def inverse_of(re, im):
    square = (re * re + im * im).inverse()
    return re * square, -(im * square)

def on_line(a, y, _, gap):  # 1/(z (z + 1))
    return inverse_of(a * (a + 1) + -(y * y), y * (2 * a + 1))

def on_lattice(a, y, spacing, gap):  # spacing (A(z) - e^gap A(z + 1))
    re, im, radius = turn(y * spacing)
    re, im = Real(re - radius, re + radius), Real(im - radius, im + radius)
    falls = real(-a * spacing).exp(), real(-(a + 1) * spacing).exp()
    parts = [inverse_of(1 + -(c * re), c * im) for c in falls]
    return [(u + -(real(gap).exp() * v)) * spacing for u, v in zip(*parts)]

def check(told):
    """Prove the claim, or raise Refused."""
    set_units(64, 2)
    need(told.get("format") == "symdp certificate 1", "not a certificate of version 1", Malformed)
    claim, witness = told["claim"], told["witness"]
    set_units(whole(witness, "bits", 64, MOST_BITS), whole(witness, "reach", 2, 64))
    epsilon, lower, upper = (number(claim.get(key), key) for key in ("epsilon", "lower", "upper"))
    whom = {"remove": "P against Q", "add": "Q against P", "both": "P against Q and Q against P"}
    direction, reached = claim.get("direction"), lower == 0
    need(0 <= lower <= upper <= 1 and direction in whom, "no interval in [0, 1], or direction")
    for side in ("remove", "add") if direction == "both" else (direction,):
        unit, low, high = enclose(told, witness[side], side == "add", epsilon)
        need(high.hi <= (upper * unit).lo, f"{side}: the upper end is not proved")
        reached = reached or low.lo >= (lower * unit).hi
    need(reached, "the lower end is not proved")
    return (f"{claim['lower']} <= delta({claim['epsilon']}) <= {claim['upper']} for the laws of "
            f"{whom[direction]}, of mass 1, and all they dominate: {json.dumps(told['steps'])}")

# Of two values of one key, a person may read the one and this program the other.
def keyed(kv): need(len(dict(kv)) == len(kv), "a key is there twice", Malformed); return dict(kv)

def main(path):
    try:
        with open(path, "rb") as file: data = file.read(MOST_BYTES + 1)
        need(len(data) <= MOST_BYTES, f"it has more than {MOST_BYTES} bytes", Malformed)
        told = json.loads(data.decode(), parse_int=str, parse_float=str, parse_constant=str,
                          object_pairs_hook=keyed)
        print("proved:", check(told))
    except (Refused, OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError,
            SyntaxError, MemoryError) as error:
        kind, code = ("refused:", 1) if type(error) is Refused else ("not a certificate:", 2)
        print(kind, " ".join(str(error).split())[:200] or type(error).__name__, file=sys.stderr)
        sys.exit(code)

if __name__ == "__main__": main(sys.argv[1])
