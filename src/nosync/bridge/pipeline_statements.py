"""What a statement of a pipeline's SQL says, taken out of the plan that Spark's own parser makes of it."""

import json
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Java, items, kind
from nosync.bridge.relations import parsed
from nosync.model.errors import Invalid

DATASETS = {
    "CreateMaterializedViewAsSelect": "materialized view",
    "CreateStreamingTableAsSelect": "streaming table",
    "CreateStreamingTable": "streaming table",
    "CreateStreamingTableAutoCdc": "streaming table",
}


@dataclass(frozen=True)
class Events:
    """The clauses of AUTO CDC."""

    source: Java
    keys: tuple[str, ...]
    sequence: Column
    deletes: Column | None
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    scd: int
    tracked: tuple[str, ...]
    untracked: tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """`kind` is that of a dataset, "flow", "set", "use" or "other", which says what it is in `text`."""

    kind: str
    name: tuple[str, ...] = ()
    query: Java | None = None
    events: Events | None = None
    target: tuple[str, ...] = ()
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    format: str | None = None
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    schema: StructType | None = None
    text: str = ""


def statement(spark: SparkSession, text: str) -> Statement:
    plan = parsed(spark, text)
    sort = kind(plan)
    if sort in DATASETS:
        return _dataset(plan, DATASETS[sort])
    match sort:
        case "CreateViewCommand":
            name = _texts(plan.name().nameParts())
            return Statement("temporary view", name, plan.plan(), comment=_option(plan.comment()))
        case "CreateView":
            name, properties = _texts(plan.child().nameParts()), _properties(plan.properties())
            text = _option(plan.originalText()) or ""
            return Statement("view", name, plan.query(), comment=_option(plan.comment()), properties=properties, text=text)
        case "CreateFlowCommand":
            return _flow(plan)
        case "SetCommand":
            pair = plan.kv()
            value = pair.get()._2() if pair.isDefined() else None
            if value is None or not value.isDefined():
                raise Invalid("SET without a value sets nothing", hint="Write SET name = value.")
            return Statement("set", (str(pair.get()._1()),), text=str(value.get()))
        case "SetNamespaceCommand":
            return Statement("use", ("", *_texts(plan.namespace())))
        case "SetCatalogAndNamespace":
            return Statement("use", ("", *_texts(plan.child().nameParts())))
        case "SetCatalogCommand":
            return Statement("use", (str(plan.catalogName()),))
    return Statement("other", text=str(plan.nodeName()))


def _dataset(plan: Java, sort: str) -> Statement:
    spec = plan.tableSpec()
    partitions: list[str] = []
    clusters: list[str] = []
    for transform in items(plan.partitioning()):
        if kind(transform) == "IdentityTransform":
            partitions += [".".join(map(str, transform.ref().fieldNames()))]
        elif kind(transform) == "ClusterByTransform":
            clusters += [".".join(map(str, column.fieldNames())) for column in items(transform.columnNames())]
        else:
            raise Invalid(f"a table cannot be partitioned by {transform.describe()}", hint="Name columns: PARTITIONED BY (day).")
    columns = [json.loads(column.toV1Column().json()) for column in items(plan.columns())]
    return Statement(
        sort,
        _texts(plan.name().nameParts()),
        plan.query() if kind(plan).endswith("AsSelect") else None,
        _events(plan) if kind(plan).endswith("AutoCdc") else None,
        comment=_option(spec.comment()),
        properties=_properties(spec.properties()),
        format=_option(spec.provider()),
        partition_by=tuple(partitions),
        cluster_by=tuple(clusters),
        schema=StructType.fromJson({"type": "struct", "fields": columns}) if columns else None,
    )


def _flow(plan: Java) -> Statement:
    name, operation = _texts(plan.name().nameParts()), plan.flowOperation()
    if kind(operation) == "AutoCdcInto":
        return Statement("flow", name, None, _events(operation), _texts(operation.targetTable().multipartIdentifier()))
    if operation.overwrite() or not operation.byName() or operation.ifPartitionNotExists() or operation.partitionSpec().size():
        raise Invalid(f'the flow "{".".join(name)}" can only insert by name', hint="Write AS INSERT INTO table BY NAME SELECT ...")
    return Statement("flow", name, operation.query(), target=_texts(operation.table().multipartIdentifier()))


def _events(plan: Java) -> Events:
    def columns(option: Java) -> tuple[str, ...]:
        return tuple(_column(one) for one in items(option.get())) if option.isDefined() else ()

    deletes = plan.deleteCondition()
    return Events(
        plan.source(),
        tuple(_column(key) for key in items(plan.keys())),
        F.expr(str(plan.sequenceByExpr().sql())),
        F.expr(str(deletes.get().sql())) if deletes.isDefined() else None,
        columns(plan.includeColumns()),
        columns(plan.excludeColumns()),
        int(plan.storedAsScdType()),
        columns(plan.trackHistoryColumns()),
        columns(plan.trackHistoryExceptColumns()),
    )


def _column(attribute: Java) -> str:
    parts = _texts(attribute.nameParts())
    if len(parts) != 1:
        raise Invalid(f'"{".".join(parts)}" is not the name of a column alone', hint="Leave out the table.")
    return parts[0]


def column_of(value: Column) -> Column:
    """A column as this session knows it: PySpark makes those of texts in auto CDC for Spark Connect, whatever the session."""
    inner = _of_connect(value)
    if inner is None:
        return value
    text = getattr(inner, "_unparsed_identifier", None)
    return F.col(str(text)) if text is not None else F.expr(str(inner._expr))


def column_name_of(value: Column) -> str:
    """The name of a column that is no more than that."""
    inner = _of_connect(value)
    text = getattr(inner, "_unparsed_identifier", None)
    if inner is None:
        classic: Any = value
        node = classic._jc.node()
        text = ".".join(_texts(node.nameParts())) if kind(node) == "UnresolvedAttribute" else None
    if text is None:
        raise Invalid(f"{value} is not the name of a column", hint='Pass names: keys=["id"].')
    return str(text).strip("`")


def _of_connect(value: Column) -> Any | None:
    """What a column of Spark Connect is made of; None for one of this session. Columns have attributes of any name."""
    return value.__dict__.get("_expr") if type(value).__module__.startswith("pyspark.sql.connect") else None


def _texts(parts: Java) -> tuple[str, ...]:
    return tuple(map(str, items(parts)))


def _option(value: Java) -> str | None:
    return str(value.get()) if value.isDefined() else None


def _properties(found: Java) -> dict[str, str]:
    return {str(pair._1()): str(pair._2()) for pair in items(found.toSeq())}
