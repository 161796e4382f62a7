"""Trees of Catalyst's, taken over from the JVM in one call each.

A plan has thousands of nodes, and asking each for its class, its children and the names of its columns takes a call every time.
`Table.read` brings over all that can be said of a tree at once. What comes is made of `KnownObject`s: they answer like the objects in the
JVM that they stand for, from what was sent where it was, else by asking; they may be given to calls like those. Equal objects are not
unified, but one object is one `KnownObject` in a table, so `is` means what it means in the JVM. Trees of Catalyst's never change: no answer
grows old.

The other end is `Trees.java`, compiled once in each JVM by the compiler that Spark compiles its queries with.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from nosync.bridge.packages import packages
from nosync.bridge.releasing import when_gone

KEPT = ("sql", "toString", "canonicalized", "semanticHash", "hashCode", "maxRows", "id", "references", "isStreaming")
_numbers = itertools.count(1)


class Trees:
    """The other end in one JVM."""

    def __init__(self, spark: SparkSession) -> None:
        gateway: Any = spark.sparkContext._gateway
        self.client = gateway._gateway_client
        self.java = helper(spark, "Trees").within(gateway.java_gateway_server.getGateway(), "")

    @staticmethod
    def of(spark: SparkSession) -> "Trees":
        """Made with the first use in a JVM."""
        application = str(spark.sparkContext.applicationId)
        if application not in _known:
            _known.clear()
            _known[application] = Trees(spark)
        return _known[application]

    def sequence(self, values: Iterable[Any]) -> Any:
        """A Scala Seq."""
        return self.java.sequence(_named(values))

    def in_place(self, plan: Any, attributes: Iterable[Any]) -> Any:
        """The columns of a plan in the place of attributes."""
        return self.java.inPlace(plan, _named(attributes))

    def nameless(self, expression: Any) -> str | None:
        """The text of an expression with `nosync#` and its number in the place of each column's name; None where it has none."""
        if isinstance(expression, KnownObject) and "nameless" in expression._sent:
            return _text(expression._sent["nameless"])
        return _text(self.java.nameless(expression))

    def replaced(self, plan: Any, before: Iterable[Any], after: Iterable[Any]) -> Any:
        """The plan with some of its expressions in the place of others."""
        return self.java.replaced(plan, _named(before), _named(after))


_known: dict[str, Trees] = {}
_helpers: dict[tuple[str, str], Any] = {}


def helper(spark: SparkSession, name: str) -> Any:
    """An instance of a Java class of ours, compiled with the first use in a JVM."""
    key = str(spark.sparkContext.applicationId), name
    if key not in _helpers:
        jvm = packages(spark)
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(files(__package__).joinpath(f"{name}.java").read_text())
        _helpers[key] = compiler.getClassLoader().loadClass(name).newInstance()
    return _helpers[key]


class Table:
    """Objects of the JVM that Python knows, as long as somebody here speaks of one of them."""

    def __init__(self, trees: Trees) -> None:
        self.prefix, self.client = f"nosync{next(_numbers)}:", trees.client
        self.java = trees.java.table(self.prefix)
        self.open = True
        self._sent: list[dict[str, Any]] = []
        self._known: list[KnownObject | None] = []
        when_gone(self, self.java.release)

    def read(self, object: Any) -> Any:
        """What stands for the object, or the sequence, option or tuple; its trees are known all the way down."""
        if isinstance(object, KnownObject) and object._table is self:
            return object
        return self._taken(self.java.read(object))

    def close(self) -> None:
        """What was sent of objects that nobody has spoken of yet is forgotten. They have their names still, and are asked."""
        self.open, self._sent, self._known = False, [], []

    def aliases(self, expressions: Sequence[Any], names: Sequence[str]) -> list[Any]:
        """New columns for expressions."""
        return list(self._taken(self.java.aliases(_named(expressions), "\n".join(names))).values)

    def attribute(self, name: str, type: Any, nullable: bool) -> Any:
        return self._taken(self.java.attribute(name, type, nullable))

    def feed(self, expressions: Sequence[Any], names: Sequence[str], passed: Sequence[Any], plan: Any) -> Any:
        return self.java.feed(_named(expressions), "\n".join(names), _named(passed), plan)

    def project(self, columns: Sequence[Any], plan: Any) -> Any:
        return self._taken(self.java.project(_named(columns), plan))

    def _taken(self, said: str) -> Any:
        root, sent = json.loads(said)
        self._sent += sent
        self._known += [None] * len(sent)
        return self.decoded(root)

    def decoded(self, value: Any, again: Callable[[], Any] | None = None) -> Any:
        """A value as it was sent; `again` gets it from the JVM where it has to be handed on."""
        if isinstance(value, list):
            return KnownSequence([self.decoded(one) for one in value], again)
        if not isinstance(value, dict):
            return value
        if "n" in value:
            return self._at(value["n"])
        if "t" in value:
            return tuple(self.decoded(one) for one in value["t"])
        return KnownOption([self.decoded(one) for one in value["o"]], again)

    def _at(self, number: int) -> "KnownObject":
        if not self.open:
            return KnownObject(self, number, {"": ""})
        found = self._known[number]
        if found is None:
            self._known[number] = found = KnownObject(self, number, self._sent[number])
        return found


def _text(said: Any) -> str | None:
    return None if said is None else str(said)


def _named(values: Iterable[Any]) -> str:
    return " ".join(value._get_object_id() for value in values)


class KnownObject(JavaObject):  # type: ignore[misc]
    """An object of the JVM of which much is known here."""

    def __init__(self, table: Table, number: int, sent: dict[str, Any]) -> None:
        self._target_id, self._gateway_client = f"{table.prefix}{number}", table.client
        self._auto_field, self._methods, self._field_names = False, dict[str, Any](), set[str]()
        self._fully_populated, self._gateway_doc = False, None
        self._table, self._sent, self._kind = table, sent, sent[""]

    def __getattr__(self, name: str) -> Any:
        table, sent = self.__dict__["_table"], self.__dict__["_sent"]
        asking = JavaObject.__getattr__
        if name in sent:
            value = table.decoded(sent[name], lambda: asking(self, name)())
            answer: Callable[..., Any] = lambda *arguments: asking(self, name)(*arguments) if arguments else value  # noqa: E731
        elif name in KEPT:
            answer = self._asked_once(name)
        else:
            return asking(self, name)
        self.__dict__[name] = answer
        return answer

    def _asked_once(self, name: str) -> Callable[..., Any]:
        found: list[Any] = []

        def answer() -> Any:
            if not found:
                found.append(JavaObject.__getattr__(self, name)())
            return found[0]

        return answer

    def equals(self, other: Any) -> bool:
        if self is other:
            return True
        if isinstance(other, KnownObject) and "ExprId" == self._kind == other._kind:
            return bool(self._sent["toString"] == other._sent["toString"])
        return bool(JavaObject.__getattr__(self, "equals")(other))

    def __eq__(self, other: object) -> bool:
        return other is not None and hasattr(other, "_get_object_id") and self.equals(other)

    def __hash__(self) -> int:
        return int(self.hashCode())


class KnownSequence:
    """A Scala Seq."""

    def __init__(self, values: list[Any], again: Callable[[], Any] | None) -> None:
        self.values, self._again, self._java = values, again, None

    def size(self) -> int:
        return len(self.values)

    def apply(self, index: int) -> Any:
        return self.values[index]

    def head(self) -> Any:
        return self.values[0]

    def isEmpty(self) -> bool:  # noqa: N802 (Scala's name)
        return not self.values

    def _get_object_id(self) -> Any:
        return _held(self)._get_object_id()

    def __getattr__(self, name: str) -> Any:
        return getattr(_held(self), name)


class KnownOption:
    """A Scala Option."""

    def __init__(self, values: list[Any], again: Callable[[], Any] | None) -> None:
        self.values, self._again, self._java = values, again, None

    def isDefined(self) -> bool:  # noqa: N802 (Scala's name)
        return bool(self.values)

    def isEmpty(self) -> bool:  # noqa: N802 (Scala's name)
        return not self.values

    def get(self) -> Any:
        return self.values[0]

    def _get_object_id(self) -> Any:
        return _held(self)._get_object_id()


def _held(known: "KnownSequence | KnownOption") -> Any:
    """The object in the JVM, of which so far only the content was known."""
    if known._java is None:
        if known._again is None:
            raise TypeError("this part of a tree was sent, and cannot be handed on")
        known._java = known._again()
    return known._java
