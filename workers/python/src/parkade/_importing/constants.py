"""What the names of a Python file stand for, as far as that can be said without running it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sized

from .draft import as_number

ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
NESTED_MAX = 50  # levels of an expression. Then: not a constant
LENGTH_MAX = 4_096  # of a text or list that is put together, which could double with each line. Then: not a constant
NUMBER_MAX = 10**15  # of a computed number, which could be squared with each line. Then: not a constant


class Unclear(Exception):
    """An expression whose value only a running program knows."""


class Constants:
    """The names whose values are known, each with notes on where its value comes from. A list is the same object under
    all its names, as in Python: what changes it under one of them changes all.
    """

    __slots__ = ("_known", "_notes")

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, tuple[str, ...]]] = {}
        self._notes: dict[str, None] = {}

    def assign(self, name: str, value: object, notes: tuple[str, ...]) -> None:
        self._known[name] = (value, notes)

    def forget(self, name: str) -> None:
        self._known.pop(name, None)

    def known(self, name: str) -> object:
        return self._known[name][0]

    def names_of_list(self, name: str) -> list[str]:
        """All names of the list, or dict, that is called `name`; none if there is no such list."""
        value, _ = self._known.get(name, (None, ()))
        if not isinstance(value, list | dict):
            return []
        return [one for one, (other, _) in self._known.items() if other is value]

    def evaluated(self, node: ast.expr) -> tuple[object, tuple[str, ...]]:
        """The value, and the notes on it."""
        self._notes = {}
        value = self._value(node, 0)
        return value, tuple(self._notes)

    def augment(self, name: str, op: ast.operator, node: ast.expr) -> tuple[list[str], tuple[str, ...]]:
        """`name += node`: the names that have another value now, and the notes on it."""
        self._notes = {}
        before = self._value(ast.Name(id=name, ctx=ast.Load()), 0)
        added = self._value(node, 0)
        if isinstance(before, list) and isinstance(added, list | tuple) and isinstance(op, ast.Add):
            if len(before) + len(added) > LENGTH_MAX:
                raise Unclear
            before.extend(added)
            changed = self.names_of_list(name)
        else:
            self._known[name] = (self._computed(op, before, added), ())
            changed = [name]
        notes = tuple(self._notes)
        for one in changed:
            self._known[one] = (self._known[one][0], notes)
        return changed, notes

    def _value(self, node: ast.expr, level: int) -> object:
        if level > NESTED_MAX:
            raise Unclear
        match node:
            case ast.Constant(value=constant):
                return constant
            case ast.Name(id=name) if name in self._known:
                value, notes = self._known[name]
                self._notes |= dict.fromkeys(notes)
                return value
            case ast.List(elts=items):
                return [self._value(item, level + 1) for item in items]
            case ast.Tuple(elts=items):
                return tuple(self._value(item, level + 1) for item in items)
            case ast.Dict(keys=keys, values=values):
                pairs = ((key, value) for key, value in zip(keys, values, strict=True) if key is not None)
                found = {str(self._value(key, level + 1)): self._value(value, level + 1) for key, value in pairs}
                if len(found) < len(keys):
                    raise Unclear
                return found
            case ast.BinOp(left=left, op=op, right=right):
                return self._computed(op, self._value(left, level + 1), self._value(right, level + 1))
            case ast.JoinedStr(values=parts):
                return _short("".join(self._part(part, level) for part in parts))
            case ast.Call():
                return self._call(node, level)
            case ast.BoolOp(op=ast.Or(), values=[first, *_]):
                return self._value(first, level + 1) or self._value(node.values[-1], level + 1)
            case _:
                raise Unclear

    def _computed(self, op: ast.operator, left: object, right: object) -> object:
        if isinstance(op, ast.Add):
            if isinstance(left, str) and isinstance(right, str):
                return _short(left + right)
            if isinstance(left, list) and isinstance(right, list):
                return _short(left + right)
            if isinstance(left, tuple) and isinstance(right, tuple):
                return _short(left + right)
        if type(op) in ARITHMETIC and isinstance(left, int | float) and isinstance(right, int | float):
            try:
                number = ARITHMETIC[type(op)](left, right)
            except (ArithmeticError, ValueError) as error:
                raise Unclear from error
            if abs(number) <= NUMBER_MAX:
                return number
        raise Unclear

    def _part(self, part: ast.expr, level: int) -> str:
        if isinstance(part, ast.FormattedValue):
            if part.format_spec is not None or part.conversion != -1:
                raise Unclear
            part = part.value
        return str(self._value(part, level + 1))

    def _call(self, node: ast.Call, level: int) -> object:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        arguments = [self._value(argument, level + 1) for argument in node.args]
        match name, arguments:
            case ("int" | "float", [value]):
                number = as_number(value)
                if number is None:
                    raise Unclear
                return int(number) if name == "int" else number
            case ("str", [value]):
                return str(value)
            case ("getenv" | "get", [variable, default]):
                self._notes[f"the default of the variable {variable}"] = None
                return default
            case _:
                raise Unclear


def _short(value: Sized) -> object:
    if len(value) > LENGTH_MAX:
        raise Unclear
    return value
