"""Catalyst's vocabulary, from Python: just enough of it to take plans apart and put them together.

Everything here is a thin call over the gateway to the JVM; what a plan means is decided elsewhere. It needs classic PySpark (a driver with
a JVM of its own).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, _parse_datatype_json_string

from nosync.bridge.packages import packages
from nosync.bridge.trees import KnownSequence, Table, Trees

Java = Any  # an object in the JVM: a plan, an expression, an attribute
ONE_FORM = frozenset((
    "BooleanType", "ByteType", "ShortType", "IntegerType", "LongType", "DecimalType", "StringType", "BinaryType", "DateType",
    "TimestampType", "TimestampNTZType",
))  # fmt: skip  # types of which equal values have equal bytes


def items(sequence: Java) -> list[Java]:
    """A Scala Seq as a list."""
    if isinstance(sequence, KnownSequence):
        return list(sequence.values)
    return [sequence.apply(i) for i in range(sequence.size())]


def children(node: Java) -> list[Java]:
    return items(node.children())


def kind(node: Java) -> str:
    """The simple class name of a plan or an expression."""
    known: dict[str, Any] = node.__dict__
    if not known.get("_kind"):
        known["_kind"] = str(node.getClass().getSimpleName())  # an object never changes its class
    return str(known["_kind"])


def data_type(expression: Java) -> DataType:
    """The type of an expression, as PySpark knows it."""
    return _parsed(str(expression.dataType().json()))


@lru_cache(maxsize=4096)
def _parsed(json: str) -> DataType:
    return _parse_datatype_json_string(json)


class Classes:
    """A package of the JVM; each class is looked for once."""

    def __init__(self, package: Java) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Java:
        found = getattr(self._package, name)
        setattr(self, name, found)
        return found


@dataclass(frozen=True, slots=True)
class AttributeIdentity:
    """The identity of an attribute, fetched once."""

    name: str
    identity: Java
    qualifier: Java

    @staticmethod
    def of(attribute: Java) -> "AttributeIdentity":
        return AttributeIdentity(str(attribute.name()), attribute.exprId(), attribute.qualifier())


class Catalyst:
    """Builds expressions and plans for one session.

    Looking up a class in the JVM is a call of its own, so what every epoch needs is looked up once.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm = packages(spark)
        self.expressions: Java = Classes(self.jvm.org.apache.spark.sql.catalyst.expressions)
        self.logical: Java = Classes(self.jvm.org.apache.spark.sql.catalyst.plans.logical)
        self.types: Java = Classes(self.jvm.org.apache.spark.sql.types.DataTypes)
        self.trees = Trees.of(spark)
        self._found: dict[str, Java] = {}

    def read(self, tree: Java) -> Java:
        """The same tree, known all the way down."""
        return Table(self.trees).read(tree)

    def forget(self) -> None:
        """Ends what is known together: what was read goes when nobody speaks of it any more."""

    @cached_property
    def _empty(self) -> Java:
        return self.seq([])

    @cached_property
    def none(self) -> Java:
        return self.option(None)

    @cached_property
    def zero(self) -> Java:
        """0 as a bigint."""
        return self.expressions.Literal.default(self.types.LongType)

    def option(self, value: Java | None) -> Java:
        return self.jvm.scala.Option.apply(value)

    @cached_property
    def _ids(self) -> Java:
        return self.expressions.NamedExpression

    @cached_property
    def _alias(self) -> Java:
        return self.expressions.Alias

    @cached_property
    def _project(self) -> Java:
        return self.logical.Project

    @cached_property
    def _dataset(self) -> Java:
        return getattr(self.jvm, "org.apache.spark.sql.classic.Dataset")

    @cached_property
    def _normaliser(self) -> Java:
        return getattr(getattr(self.jvm, "org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers$"), "MODULE$")

    @cached_property
    def _parser(self) -> Java:
        return getattr(getattr(self.jvm, "org.apache.spark.sql.catalyst.parser.CatalystSqlParser$"), "MODULE$")

    @cached_property
    def nowhere(self) -> Java:
        """Stands below a node whose real child comes later."""
        return self.logical.OneRowRelation()

    def seq(self, values: Iterable[Java]) -> Java:
        return self.trees.sequence(values)

    def array(self, values: Sequence[Java]) -> Java:
        """An array of objects."""
        found = self.spark.sparkContext._gateway.new_array(self.jvm.java.lang.Object, len(values))  # type: ignore[union-attr]
        for index, value in enumerate(values):
            found[index] = value
        return found

    def frame(self, plan: Java) -> DataFrame:
        """A DataFrame that runs the plan."""
        return DataFrame(self._dataset.ofRows(self.spark._jsparkSession, plan), self.spark)

    def new_id(self) -> Java:
        return self._ids.newExprId()

    def attribute(self, name: str, type: Java, nullable: bool = True) -> Java:
        """A fresh column of a Java type."""
        metadata = self.jvm.org.apache.spark.sql.types.Metadata.empty()
        return self.expressions.AttributeReference(name, type, nullable, metadata, self.new_id(), self._empty)

    def alias(self, expression: Java, name: str, like: Java = None) -> Java:
        """The expression under a name; with `like`, in place of that attribute: whatever is bound to it stays bound."""
        if like is None:
            return self.aliases([(expression, name)])[0]
        return self._alias(expression, name, like.exprId(), like.qualifier(), self.none, self._empty)

    def aliases(self, named: Iterable[tuple[Java, str]]) -> list[Java]:
        """Expressions under names of our own."""
        return [self._alias(value, name, self.new_id(), self._empty, self.none, self._empty) for value, name in named]

    def feed(self, named: Iterable[tuple[Java, str]], passed: Sequence[Java]) -> Java:
        """A projection that only jobs look at: expressions under names of our own, and what is passed on."""
        return self.project([*self.aliases(named), *passed], self.nowhere)

    def with_mark(self, attribute: Java, key: str) -> Java:
        """The attribute itself, with a mark in its metadata that everything above passes on."""
        builder = self.jvm.org.apache.spark.sql.types.MetadataBuilder().withMetadata(attribute.metadata())
        metadata = self.option(builder.putBoolean(key, True).build())
        return self._alias(attribute, attribute.name(), attribute.exprId(), attribute.qualifier(), metadata, self._empty)

    def renamed(self, columns: Sequence[Java], targets: Sequence["AttributeIdentity"], plan: Java) -> Java:
        """The columns of a plan in the place of other attributes, one by one."""
        pairs = zip(columns, targets, strict=True)
        aliases = [self._alias(column, t.name, t.identity, t.qualifier, self.none, self._empty) for column, t in pairs]
        return self.project(aliases, plan)

    def in_place(self, plan: Java, attributes: Sequence[Java]) -> Java:
        """All columns of a plan in the place of these attributes, one by one, in one call."""
        return self.trees.in_place(plan, attributes)

    def project(self, columns: Sequence[Java], plan: Java) -> Java:
        return self._project(self.seq(columns), plan)

    def literal(self, value: Any, type: Java) -> Java:
        return self.expressions.Literal(value, type)

    def long(self, value: int) -> Java:
        """A bigint, however small: the gateway would make an int of it."""
        return self._parser.parseExpression(f"{value}L")

    def null(self, type: Java) -> Java:
        name = f"null {type.json()}"
        if name not in self._found:
            self._found[name] = self.expressions.Literal(None, type)
        return self._found[name]

    def when(self, condition: Java, value: Java) -> Java:
        """The value where the condition holds, else null."""
        return self.expressions.If(condition, value, self.null(value.dataType()))

    def hash(self, columns: Sequence[Java]) -> Java:
        """Spark's own xxhash64 with its own seed; of no columns, the seed."""
        columns = columns or [self.null(self.types.IntegerType)]
        return self.expressions.XxHash64(self.seq(columns), 42)

    def cast(self, value: Java, type: Java) -> Java:
        zone = self.option(self.spark.conf.get("spark.sql.session.timeZone"))
        return self._object("Cast").apply(value, type, zone, False)

    def nameless(self, expression: Java) -> str | None:
        """What an expression says with numbers in the place of names."""
        return self.trees.nameless(expression)

    def text(self, value: Java) -> Java:
        """The value as text, for what cannot be sorted otherwise."""
        return self.cast(value, self.types.StringType)

    def normalised(self, key: Java) -> Java:
        """A grouping key as Spark groups it: one NaN, one zero."""
        return key if kind(key.dataType()).rstrip("$") in ONE_FORM else self._normaliser.normalize(key)

    def join(self, left: Java, right: Java, how: str, condition: Java) -> Java:
        """A join; `how` is the name of Catalyst's join type."""
        sort = self._singleton(f"org.apache.spark.sql.catalyst.plans.{how}$")
        return self.logical.Join(left, right, sort, self.option(condition), self.no_hint)

    def count(self, expression: Java = None) -> Java:
        """A call of count: of rows, or of those where the expression is not null."""
        counted = self.literal(1, self.types.IntegerType) if expression is None else expression
        return self.expressions.aggregate.Count(self.seq([counted])).toAggregateExpression()

    def null_aware_key(self, join: Java) -> tuple[Java, Java] | None:
        """The key of the left and of the right where the join is a `not in` with one column."""
        found = self.read(self._patterns.ExtractSingleColumnNullAwareAntiJoin.unapply(join))
        return (found.get()[0].head(), found.get()[1].head()) if found.isDefined() else None

    def equi_join_keys(self, join: Java) -> tuple[list[Java], list[Java], Java | None] | None:
        """What Spark would hash a join by: the keys of the left, those of the right, and the rest of the condition; None without a key."""
        found = self.read(self._patterns.ExtractEquiJoinKeys.unapply(join))
        if not found.isDefined():
            return None
        _, left, right, rest, *_ = found.get()
        return items(left), items(right), rest.get() if rest.isDefined() else None

    def _object(self, name: str) -> Java:
        """A Scala object of the expressions package."""
        return self._singleton(f"org.apache.spark.sql.catalyst.expressions.{name}$")

    def _singleton(self, name: str) -> Java:
        if name not in self._found:
            self._found[name] = getattr(getattr(self.jvm, name), "MODULE$")
        return self._found[name]

    @cached_property
    def _patterns(self) -> Java:
        return Classes(self.jvm.org.apache.spark.sql.catalyst.planning)

    @cached_property
    def no_hint(self) -> Java:
        return self.logical.JoinHint.NONE()

    def ascending(self, columns: Sequence[Java]) -> list[Java]:
        """An order by these expressions, nulls first."""
        up, nulls = self._object("Ascending"), self._object("NullsFirst")
        return [self.expressions.SortOrder(column, up, nulls, self._empty) for column in columns]

    def order(self, value: Java, descending: bool = False) -> Java:
        """How rows are sorted by one expression, nulls where SQL puts them."""
        names = ("Descending", "NullsLast") if descending else ("Ascending", "NullsFirst")
        return self.expressions.SortOrder(value, *map(self._object, names), self._empty)

    def sort(self, order: Sequence[Java]) -> Java:
        """A sort of each partition."""
        return self.logical.Sort(self.seq(order), False, self.nowhere, self.none)

    def placed_by(self, columns: Sequence[Java]) -> Java:
        """An exchange that brings together what is equal in these columns."""
        return self.logical.RepartitionByExpression(self.seq(columns), self.nowhere, self.none, self.none)

    def window(self, functions: Sequence[Java], partition: Sequence[Java], order: Sequence[Java]) -> Java:
        return self.logical.Window(self.seq(functions), self.seq(partition), self.seq(order), self.nowhere, self.none)

    def row_number(self, partition: Sequence[Java], order: Sequence[Java]) -> Java:
        frame = self.expressions.SpecifiedWindowFrame(*map(self._object, ("RowFrame", "UnboundedPreceding", "CurrentRow")))
        definition = self.expressions.WindowSpecDefinition(self.seq(partition), self.seq(order), frame)
        return self.expressions.WindowExpression(self.expressions.RowNumber(), definition)

    def with_expressions(self, node: Java, new: Sequence[Java]) -> Java:
        """A plan's node with other expressions, one by one."""
        return self.trees.replaced(node, items(node.expressions()), new)

    def with_children(self, node: Java, new: Sequence[Java]) -> Java:
        return node.withNewChildren(self.seq(new))
