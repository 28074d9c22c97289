"""Formula text to SymPy by a whitelist: every number stays exact, and no text is ever run."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import sympy as sp
from sympy.functions.elementary.piecewise import ExprCondPair

from symdp.errors import InputError, suggestion
from symdp.exact_number import DIGITS, decimal_fraction, exact_number, shorten
from symdp.model.reading.guarded import USELESS, Part, build, leaf

_LONGEST_TEXT = 20_000
_MOST_TOKENS = 5_000
_DEEPEST_BRACKETS = 100
_MOST_BRANCHES = 100  # terms compared, or inside Abs, sign, Min, Max: SymPy pairs them up
_LARGEST_POWER = 20  # of a sum, in such a term

_ONE_ARGUMENT = (
    "exp log sqrt Abs sign erf erfc gamma loggamma factorial sin cos tan asin acos atan"
    " sinh cosh tanh asinh acosh atanh sech csch coth"
)
_BRANCHING: dict[str, tuple[Callable[..., sp.Basic], int, int]] = {
    "Min": (sp.Min, 2, 8),
    "Max": (sp.Max, 2, 8),
    "Abs": (sp.Abs, 1, 1),
    "sign": (sp.sign, 1, 1),
}
_FUNCTIONS: dict[str, tuple[Callable[..., sp.Basic], int, int]] = {  # head, least, most arguments
    **{name: (getattr(sp, name), 1, 1) for name in _ONE_ARGUMENT.split()},
    **{name: (getattr(sp, name), 2, 2) for name in ("binomial", "besseli", "besselk")},
    **_BRANCHING,
    "beta": (sp.beta, 2, 2),
}
_ALIASES = {"ln": "log", "abs": "Abs", "min": "Min", "max": "Max"}
CONSTANTS: dict[str, sp.Expr] = {"pi": sp.pi, "E": sp.E, "oo": sp.oo}
_CASES = "write Piecewise((value, condition), (other, True))"
_CASE_WORDS = ("if", "else", "elif", "for", "in")
_INSTEAD = {  # of functions that SymPy or NumPy has
    "Rational": "write 1/3, which is exact",
    "Heaviside": "write Piecewise((1, x > 0), (0, True)) for a variable x",
    "where": _CASES,
    "pow": "write x**y",
    "exp2": "write 2**x",
    "expm1": "write exp(x) - 1",
    "log1p": "write log(1 + x)",
    "log2": "write log(x)/log(2)",
    "log10": "write log(x)/log(10)",
}
_COMPARISONS = {"<": sp.Lt, "<=": sp.Le, ">": sp.Gt, ">=": sp.Ge}
# a product binds at 4
_COMPARISON = 2
_SUM = 3
_POWER = 5
_BINDING = {"|": 0, "&": 1, **dict.fromkeys(_COMPARISONS, _COMPARISON), "**": _POWER}
_BINDING |= dict.fromkeys("+-", _SUM) | dict.fromkeys("*/", _SUM + 1)
_MINUS_ONE = leaf(sp.Integer(-1))

_CODE = frozenset({"eval", "exec", "print", "open"} | set(keyword.kwlist)) - {"True", "and", "or"}
_HINTS = {
    "^": "write ** for a power",
    "=": "compare with <, <=, > or >=",
    ".": "a formula has no attributes",
    "!": "write factorial(n)",
    **dict.fromkeys("[]{}", "use round parentheses"),
    **dict.fromkeys("'\"", "a formula holds no strings"),
    **dict.fromkeys(";:@#\\`$?~%", "this is a formula, not code"),
    **dict.fromkeys("\u2212\u2013\u2014", "write -"),
    **dict.fromkeys("\u00d7\u00b7\u22c5", "write *"),
    **dict.fromkeys("\u00b2\u00b3", "write ** for a power"),
    "\u221e": "write oo",
    "\u221a": "write sqrt(...)",
}
_TOKEN = re.compile(
    rf"(?P<space>\s+)|(?P<number>{DIGITS})|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<operator>\*\*|<=|>=|[-+*/()<>,&|])",
    re.ASCII,
)

_LIBRARIES = ("np", "numpy", "math", "sp", "sympy", "mp", "mpmath", "scipy", "torch", "jnp")
_RATIO = re.compile(rf"{DIGITS}(/[1-9]\d*)?", re.ASCII)


def parse(text: str, symbols: Mapping[str, sp.Symbol], *, infinite: bool = False) -> sp.Expr:
    """Read a formula exactly.

    Numbers and ratios are exact (0.1 is 1/10). Operators + - * / **, parentheses, the whitelisted
    functions, pi and E, and ``Piecewise((expr, condition), ..., (expr, True))`` whose conditions
    are comparisons, chained (a < x < b) or joined by & and | in parentheses.
    """
    if not isinstance(text, str):
        raise InputError(f"a formula is text, not {type(text).__name__}")
    if len(text) > _LONGEST_TEXT:
        raise InputError(f"the formula has {len(text)} characters, more than {_LONGEST_TEXT}")
    if not text.strip():
        raise InputError("the formula is empty")
    if _RATIO.fullmatch(text):  # what most rates are
        return parse_value(text)
    if infinite and text.replace(" ", "") in {"oo", "+oo", "-oo"}:
        if "-" in text:
            return -sp.oo
        return sp.oo
    try:
        result = _Parser(list(_tokens(text)), symbols).formula()
    except RecursionError:
        raise InputError("the formula is nested too deeply; simplify it") from None
    if result.has(*USELESS):
        raise InputError(f"the formula {shorten(text)} is not finite and real")
    return result


def parse_value(text: str) -> sp.Expr:
    """Read a number, a ratio of two, or a formula without names such as sqrt(2), exactly."""
    if "(" in text:
        return parse(text, {})
    value = exact_number(text)
    return sp.Rational(value.numerator, value.denominator)


class _Token(NamedTuple):
    kind: str
    text: str


def _tokens(text: str) -> Iterator[_Token]:
    position = count = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            character = text[position]
            hint = _HINTS.get(character, "")
            name = unicodedata.name(character, "")
            if not hint and name.startswith("GREEK SMALL LETTER "):
                hint = f"spell it {name.rpartition(' ')[2].lower()}"
            if character == ".":
                hint = _without_library(text, position) or hint
            what = f"{shorten(character)} is not allowed in a formula (character {position + 1})"
            raise InputError(f"{what}; {hint}" if hint else what)
        position = match.end()
        if match.lastgroup != "space":
            count += 1
            if count > _MOST_TOKENS:
                raise InputError(f"the formula has over {_MOST_TOKENS} numbers, names and signs")
            yield _Token(str(match.lastgroup), match.group())
    yield _Token("end", "")


def _without_library(text: str, position: int) -> str:
    """Return what to write for a function of a library, as exp for np.exp; nothing elsewhere."""
    before = re.search(r"[A-Za-z_]\w*$", text[:position])
    after = re.match(r"[A-Za-z_]\w*", text[position + 1 :])
    if before is None or after is None or before.group() not in _LIBRARIES:
        return ""
    return f"write {after.group()} for {before.group()}.{after.group()}"


def _exact_decimal(text: str) -> sp.Rational:
    value = decimal_fraction(text)
    return sp.Rational(value.numerator, value.denominator)


class _Parser:
    """Precedence climbing: `expression(least)` reads all that binds at least that tightly."""

    def __init__(self, tokens: list[_Token], symbols: Mapping[str, sp.Symbol]) -> None:
        self.tokens = tokens
        self.symbols = symbols
        self.place = self.depth = self.branches = 0

    def formula(self) -> sp.Expr:
        result = self.expression(0)
        if self._next.kind == "end":
            return self._number_part(result).expr
        if self._next.text in {")", ","}:
            raise InputError(f"'(' is missing for '{self._next.text}'")
        if self._next.text in _CODE | {"and", "or"}:
            self._refuse_code(self._next.text)
        raise self._without_operator()

    def _without_operator(self) -> InputError:
        """Return what to say where two terms stand beside each other."""
        after = self._next
        before = self.tokens[max(self.place - 1, 0)]
        if after.kind == "name" and before.kind == "number":
            digits = after.text.replace("_", "")
            if digits.isdecimal():
                return InputError(f"write {before.text}{digits} for {before.text}{after.text}")
            return InputError(
                f"an operator is missing in {shorten(before.text + after.text)}: write "
                f"{shorten(f'{before.text}*{after.text}')}"
            )
        return InputError(f"an operator such as * is missing before {shorten(after.text)}")

    def expression(self, least: int) -> Part:
        left = self.signed() if self._next.text in {"+", "-"} else self.atom()
        while (binding := _BINDING.get(self._next.text, -1)) >= least:
            if binding == _POWER:
                left = self.power(left)
            elif binding >= _SUM:
                left = self.arithmetic(left, binding)
            elif binding == _COMPARISON:
                left = self.comparison(left)
            else:
                left = self.joined(left, self._next.text, binding)
        return left

    def signed(self) -> Part:
        minus = 0
        while self._next.text in {"+", "-"}:
            minus += self._advance().text == "-"
        part = self._number_part(self.expression(_POWER))
        if minus % 2:
            return build(sp.Mul, [_MINUS_ONE, part])
        return part

    def power(self, base: Part) -> Part:
        self._advance()
        self._descend()
        exponent = self.expression(_POWER)  # right-associative
        self.depth -= 1
        return self._built(sp.Pow, [base, exponent])

    def arithmetic(self, left: Part, binding: int) -> Part:
        # All terms at once: adding them one by one costs the square of their number.
        parts = [left]
        while _BINDING.get(self._next.text) == binding:
            sign = self._advance().text
            part = self._number_part(self.expression(binding + 1))
            if sign == "-":
                part = build(sp.Mul, [_MINUS_ONE, part])
            elif sign == "/":
                if part.expr == 0:
                    comma = self._decimal_comma(self.place - 1)
                    raise InputError(f"the formula divides by zero{comma}")
                part = build(sp.Pow, [part, _MINUS_ONE])
            parts.append(part)
        return self._built(sp.Add if binding == _SUM else sp.Mul, parts)

    def _decimal_comma(self, first: int) -> str:
        """Return what to say of a number with a comma, among the tokens from one on."""
        for start in range(first, self.place):
            whole, comma, digits = (self.tokens + [_Token("end", "")] * 2)[start : start + 3]
            if comma.text == "," and whole.kind == digits.kind == "number":
                written = f"{whole.text},{digits.text}"
                return f"; if {written} is a number, write {written.replace(',', '.')}"
        return ""

    def comparison(self, left: Part) -> Part:
        comparisons = []
        while self._next.text in _COMPARISONS:
            head = _COMPARISONS[self._advance().text]
            right = self.expression(_SUM)
            self._branch([left, right])
            comparisons.append(self._built(head, [left, right]))
            left = right
        if len(comparisons) == 1:
            return comparisons[0]
        return build(sp.And, comparisons)

    def joined(self, left: Part, sign: str, binding: int) -> Part:
        parts = [left]
        while self._take(sign):
            parts.append(self.expression(binding + 1))
        head = sp.And if sign == "&" else sp.Or
        return build(head, [self._condition_part(part) for part in parts])

    def atom(self) -> Part:
        token = self._advance()
        if token.kind == "number":
            return leaf(_exact_decimal(token.text))
        if token.kind == "name":
            if self._next.text == "(":
                return self.call(token.text)
            return self.name(token.text)
        if token.text == "(":
            self._descend()
            inner = self.expression(0)
            self._expect(")")
            self.depth -= 1
            return inner
        if token.text == "|":
            raise InputError("'|' joins conditions; for an absolute value write abs(...)")
        next_text = f"'{token.text}'" if token.text else "the end"
        raise InputError(f"a number or a name is missing before {next_text}")

    def name(self, name: str) -> Part:
        if name in self.symbols:
            return leaf(self.symbols[name])
        if name == "True":
            return leaf(sp.true)
        if name == "oo":
            raise InputError("oo (infinity) stands only alone, as an end of a support")
        if name in CONSTANTS:
            return leaf(CONSTANTS[name])
        if name in _FUNCTIONS or name in _ALIASES or name == "Piecewise":
            raise InputError(f"{name} is a function; write {name}(...)")
        self._refuse_code(name)
        hint = suggestion(name, self.symbols)
        if name.lower() in {"inf", "infinity"}:
            hint = "; infinity is written oo"
        elif not hint:
            names = f"; known are {', '.join(list(self.symbols)[:10])}" if self.symbols else ""
            hint = f"{names}; declare a parameter under [parameters]"
        raise InputError(f"unknown name {shorten(name)}{hint}")

    def call(self, name: str) -> Part:
        if name in self.symbols or name in CONSTANTS:
            raise InputError(f"'{name}' is not a function here; write {name}*(...)")
        self._refuse_code(name)
        name = _ALIASES.get(name, name)
        start = self.place
        if name not in _FUNCTIONS and name != "Piecewise":
            close = suggestion(name, [*_FUNCTIONS, "Piecewise"])
            hint = f"; {_INSTEAD[name]}" if name in _INSTEAD else close
            raise InputError(f"unknown function {shorten(name)}{hint}")
        self._expect("(")
        self._descend()
        parts: list[Part] = []
        while self._next.text != ")" if not parts else self._take(","):
            parts.append(self.branch() if name == "Piecewise" else self.expression(0))
        self._expect(")")
        self.depth -= 1
        if name == "Piecewise":
            if not parts or parts[-1].expr.args[1] is not sp.true:
                raise InputError("the last pair of a Piecewise must be (expr, True)")
            return build(sp.Piecewise, parts)
        head, least, most = _FUNCTIONS[name]
        if not least <= len(parts) <= most:
            count = ("1 argument", "2 arguments", "2 to 8 arguments")[min(most, 3) - 1]
            comma = self._decimal_comma(start)
            raise InputError(f"{name} takes {count}, not {len(parts)}{comma}")
        if name in _BRANCHING:
            self._branch(parts)
        if name == "beta":
            return self._beta(parts)
        if name == "sqrt":
            head = sp.Pow
            parts = [*parts, leaf(sp.Rational(1, 2))]
        return self._built(head, parts)

    def _beta(self, parts: list[Part]) -> Part:
        # SymPy's own turns beta(1/2, 3/2) into a Catalan number, which few targets can evaluate.
        above = [self._built(sp.gamma, [part]) for part in parts]
        below = build(sp.gamma, [self._built(sp.Add, parts)])
        return build(sp.Mul, [*above, build(sp.Pow, [below, _MINUS_ONE])])

    def branch(self) -> Part:
        if not self._take("("):
            raise InputError("Piecewise takes pairs: Piecewise((expr, condition), (expr, True))")
        value = self._number_part(self.expression(0))
        self._expect(",")
        condition = self._condition_part(self.expression(0))
        self._expect(")")
        return build(ExprCondPair, [value, condition])

    @property
    def _next(self) -> _Token:
        return self.tokens[self.place]

    def _advance(self) -> _Token:
        token = self._next
        self.place += token.kind != "end"
        return token

    def _take(self, sign: str) -> bool:
        is_next = self._next.text == sign
        self.place += is_next
        return is_next

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            self._refuse_code(self._next.text)
            before = self.tokens[max(self.place - 1, 0)]
            if before.kind == "number" and self._next.kind in ("name", "number"):
                raise self._without_operator()
            next_text = shorten(self._next.text) if self._next.text else "the end"
            raise InputError(f"'{sign}' is missing before {next_text}")

    def _refuse_code(self, name: str) -> None:
        if name in {"and", "or"}:
            sign = "&" if name == "and" else "|"
            raise InputError(f"'{name}' is not allowed; write (a < x) {sign} (x < b)")
        if name in _CODE or name.startswith("_"):
            remedy = _CASES if name in _CASE_WORDS else "a formula holds only numbers and functions"
            raise InputError(f"{shorten(name)} is code; {remedy}")

    def _descend(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST_BRACKETS:
            raise InputError(f"the formula is nested over {_DEEPEST_BRACKETS} levels deep")

    def _branch(self, parts: list[Part]) -> None:
        self.branches += len(parts)
        if self.branches > _MOST_BRANCHES:
            raise InputError(
                f"the formula has over {_MOST_BRANCHES} terms compared, or inside Abs, Min and Max"
            )
        powers = {power for part in parts for power in part.expr.atoms(sp.Pow)}
        for power in (power for power in powers if power.exp.is_Rational):
            size = power.exp.q if power.base.is_number else abs(power.exp.p) * power.base.is_Add
            if size > _LARGEST_POWER:  # SymPy would expand it, or seek its minimal polynomial
                raise InputError(f"{shorten(str(power))} cannot be compared; simplify it")

    def _built(self, head: Callable[..., sp.Basic], parts: list[Part]) -> Part:
        return build(head, [self._number_part(part) for part in parts])

    @staticmethod
    def _number_part(part: Part) -> Part:
        if not isinstance(part.expr, sp.Expr):
            raise InputError("a comparison stands where a number is needed; use Piecewise")
        return part

    @staticmethod
    def _condition_part(part: Part) -> Part:
        if isinstance(part.expr, sp.Expr):
            raise InputError("a condition is needed: a comparison such as x < 1, or True")
        if part.expr.has(sp.Piecewise):
            raise InputError("a Piecewise cannot stand inside a condition")
        return part
