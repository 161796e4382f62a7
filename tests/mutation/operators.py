"""The ways to change a function: each takes one condition, look, refusal or order away.

    true, false   a condition always holds, or never
    and, or       one of several conditions is left out
    boundary      < for <=, > for >=, and the other way round
    opposite      a comparison outside of conditions says the contrary
    position      x for x + 1 and x - 1
    extreme       min for max, any for all, and the other way round
    call          a statement that is a call is left out
    raise         an error is not raised
    except        an error that is handled is raised again
    suppress      an error that is passed over is raised
    order         two neighbouring statements change places, where both reach storage

Pure: an operator looks at one place of a tree and says what could be done there; `Edit.make` does it to that tree.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# The calls behind which bytes are written, read or promised: of stores, of the journal, of sources and sinks, of the file system.
STORAGE = frozenset((
    "append", "clear_beginnings", "close", "create", "deliver", "delete", "download", "exists", "fence", "fetch", "flush",
    "forget", "fsync", "link", "look", "make_folder", "next_tile", "open_private", "parts", "put", "put_file", "read", "read_all",
    "read_chain", "rename", "replace", "replace_file", "resolve", "ship", "size", "sizes", "sizes_of", "sync_files",
    "sync_folders", "take", "trim", "truncate", "unlink", "upload", "write",
))  # fmt: skip
BOUNDARIES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPPOSITES = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
EXTREMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
MOVABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.For, ast.With, ast.If)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node hangs in its tree."""

    owner: ast.AST
    field: str
    index: int | None
    storage: frozenset[str] = frozenset()  # calls that reach storage, in this file

    @property
    def node(self) -> ast.AST:
        held = getattr(self.owner, self.field)
        found: ast.AST = held if self.index is None else held[self.index]
        return found

    def put(self, node: ast.AST) -> None:
        ast.copy_location(node, self.node)
        ast.fix_missing_locations(node)
        if self.index is None:
            setattr(self.owner, self.field, node)
        else:
            getattr(self.owner, self.field)[self.index] = node

    @property
    def decides(self) -> bool:
        """Whether the node is a condition."""
        tests = isinstance(self.owner, ast.If | ast.While | ast.IfExp | ast.Assert) and self.field == "test"
        return tests or (isinstance(self.owner, ast.comprehension) and self.field == "ifs") or self.field == "guard"


@dataclass(frozen=True, slots=True)
class Edit:
    """Something that can be done at a place. `text` is the source that it is done to."""

    kind: str
    node: ast.AST
    text: str
    make: Callable[[], None]


def conditions(place: Place) -> Iterator[Edit]:
    node = place.node
    if not place.decides or isinstance(node, ast.Constant):
        return
    loop, claim = isinstance(place.owner, ast.While), isinstance(place.owner, ast.Assert)
    if claim and (_tells_a_type(node)):
        return
    for kind, value in (("true", True), ("false", False)):
        if not (value and loop) and not (claim and not value):
            yield Edit(kind, node, ast.unparse(node), lambda value=value: place.put(ast.Constant(value)))  # type: ignore[misc]


def _tells_a_type(node: ast.AST) -> bool:
    """Said to the type checker, not to the run."""
    if isinstance(node, ast.BoolOp):
        return all(map(_tells_a_type, node.values))
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) == "isinstance"
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.IsNot) and ast.unparse(node.comparators[0]) == "None"


def operands(place: Place) -> Iterator[Edit]:
    node = place.node
    if not isinstance(node, ast.BoolOp):
        return
    kind = "and" if isinstance(node.op, ast.And) else "or"
    for index, left_out in enumerate(node.values):
        rest = [value for at, value in enumerate(node.values) if at != index]
        shorter = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        text = f"{ast.unparse(left_out)} of {ast.unparse(node)}"
        yield Edit(kind, left_out, text, lambda shorter=shorter: place.put(copy.deepcopy(shorter)))  # type: ignore[misc]


def comparisons(place: Place) -> Iterator[Edit]:
    node = place.node
    if not isinstance(node, ast.Compare):
        return
    for index, operator in enumerate(node.ops):
        shifted, opposite = BOUNDARIES.get(type(operator)), OPPOSITES.get(type(operator))
        if shifted is not None:
            yield Edit("boundary", node, _compared(node, index), _operator(node, index, shifted))
        elif opposite is not None and not place.decides:
            yield Edit("opposite", node, _compared(node, index), _operator(node, index, opposite))


def _compared(node: ast.Compare, index: int) -> str:
    return ast.unparse(node) + (f" at {index}" if index else "")


def _operator(node: ast.Compare, index: int, kind: type[ast.cmpop]) -> Callable[[], None]:
    def make() -> None:
        node.ops[index] = kind()

    return make


def contraries(place: Place) -> Iterator[Edit]:
    node = place.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and not place.decides:
        yield Edit("opposite", node, ast.unparse(node), lambda: place.put(node.operand))


def positions(place: Place) -> Iterator[Edit]:
    node = place.node
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
        return
    for one, other in ((node.right, node.left), (node.left, node.right)):
        if isinstance(one, ast.Constant) and type(one.value) is int and one.value == 1:
            yield Edit("position", node, ast.unparse(node), lambda other=other: place.put(other))  # type: ignore[misc]


def extremes(place: Place) -> Iterator[Edit]:
    node = place.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in EXTREMES:
        return
    function = node.func

    def make() -> None:
        function.id = EXTREMES[function.id]

    yield Edit("extreme", node, ast.unparse(node), make)


def calls(place: Place) -> Iterator[Edit]:
    node = place.node
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield Edit("call", node, ast.unparse(node), lambda: place.put(ast.Pass()))


def refusals(place: Place) -> Iterator[Edit]:
    node = place.node
    if isinstance(node, ast.Raise):
        yield Edit("raise", node, ast.unparse(node), lambda: place.put(ast.Pass()))


def handlers(place: Place) -> Iterator[Edit]:
    node = place.node
    if not isinstance(node, ast.ExceptHandler) or isinstance(node.body[0], ast.Raise):
        return

    def make() -> None:
        node.body = [ast.fix_missing_locations(ast.copy_location(ast.Raise(), node.body[0]))]

    yield Edit("except", node, ast.unparse(node), make)


def passed_over(place: Place) -> Iterator[Edit]:
    node = place.node
    if isinstance(node, ast.withitem) and isinstance(node.context_expr, ast.Call) and ast.unparse(node.context_expr.func) == "suppress":
        call = node.context_expr
        yield Edit("suppress", call, ast.unparse(call), lambda: call.args.clear())


def orders(place: Place) -> Iterator[Edit]:
    """The second of two statements may need what the first made: then there is only one order."""
    if place.index is None or not isinstance(place.node, ast.stmt):
        return
    body = getattr(place.owner, place.field)
    if place.index + 1 == len(body):
        return
    one, other = body[place.index : place.index + 2]
    movable = isinstance(one, MOVABLE) and isinstance(other, MOVABLE) and not _leaves(one) and not _leaves(other)
    if not movable or not (_stores(one, place.storage) and _stores(other, place.storage)) or _made(one) & _used(other):
        return

    def make() -> None:
        assert place.index is not None
        body[place.index], body[place.index + 1] = other, one

    yield Edit("order", one, f"{ast.unparse(one)}; {ast.unparse(other)}", make)


def _leaves(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Return | ast.Raise | ast.Break | ast.Continue | ast.Yield) for inner in ast.walk(node))


def _stores(node: ast.AST, storage: frozenset[str]) -> bool:
    return any(name in storage for name in called(node))


def called(node: ast.AST) -> Iterator[str]:
    """The names of everything that is called inside."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            if isinstance(inner.func, ast.Attribute):
                yield inner.func.attr
            elif isinstance(inner.func, ast.Name):
                yield inner.func.id


def _made(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}


def _used(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}


OPERATORS = (conditions, operands, comparisons, contraries, positions, extremes, calls, refusals, handlers, passed_over, orders)
