"""Translate the accountant, which is written in a small part of Python, into C and JavaScript.

There are numbers, vectors of numbers and records. An expression over vectors is one loop over their
places; `total`, `summed` and `largest` are loops that end in a number. Vectors in C come from a
list of blocks; a function that returns a number and leaves no vector behind gives its own back.
"""

from __future__ import annotations

import ast

from symdp.emit.standalone.functions import Function, Language, Unit, Writer, c_type


def translate(
    source: str, language: Language, declared: dict[str, list[str]], vectors: frozenset[str]
) -> str:
    """Return functions, records and constants of a text with annotated types in another language.

    `declared, vectors`: elementwise functions, with the kinds of their arguments, and names of
    tables that stand before it.

    >>> from symdp.emit.standalone.functions import JAVASCRIPT
    >>> text = "def half(v: Vector) -> Vector:\\n    return 0.5 * v\\n"
    >>> print(translate(text, JAVASCRIPT, {}, frozenset()))
    function half(v) {
      let t0;
      t0 = new Float64Array(v.length);
      for (let i = 0; i < t0.length; i++) t0[i] = (0.5 * v[i]);
      return t0;
    }
    """
    unit = Unit(language, vectors=vectors)
    module = ast.parse(source)
    for name, kinds in declared.items():
        stub = ast.parse(f"def {name}({', '.join(f'a{i}' for i in range(len(kinds)))}): pass").body[
            0
        ]
        assert isinstance(stub, ast.FunctionDef)
        unit.functions[name] = Function(stub, kinds, "Number" if "Number" in kinds else "float")
    written = []
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            fields = {
                a.target.id: ast.unparse(a.annotation)
                for a in node.body
                if isinstance(a, ast.AnnAssign) and isinstance(a.target, ast.Name)
            }
            unit.records[node.name] = fields
            written.append(_record(node.name, fields, language))
        elif isinstance(node, ast.Assign):
            (target,) = node.targets
            assert isinstance(target, ast.Name)
            value = repr(ast.literal_eval(node.value))
            written.append(
                f"#define {target.id} {value}" if language.is_c else f"const {target.id} = {value};"
            )
        elif isinstance(node, ast.FunctionDef):
            assert node.returns is not None
            kinds = [ast.unparse(a.annotation) for a in node.args.args if a.annotation]
            unit.functions[node.name] = Function(node, kinds, ast.unparse(node.returns))
    for name, function in unit.functions.items():
        if name not in declared:
            written.append(Writer(unit, function).text())
    return "\n\n".join(written)


def _record(name: str, fields: dict[str, str], language: Language) -> str:
    if language.is_c:
        lines = "".join(f"    {c_type(kind)}{key};\n" for key, kind in fields.items())
        return f"typedef struct {{\n{lines}}} {name};"
    values = ", ".join(
        f"{key}: {'null' if kind == 'Vector' else 0}" for key, kind in fields.items()
    )
    return f"const {name} = () => ({{ {values} }});"
