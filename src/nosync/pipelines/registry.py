"""What the Python files of a project register, as `pyspark.pipelines` hands it over: kept, and not run."""

from pathlib import Path
from typing import Any

from pyspark.pipelines.flow import AutoCdcFlow
from pyspark.pipelines.flow import Flow as PipelineFlow
from pyspark.pipelines.graph_element_registry import GraphElementRegistry
from pyspark.pipelines.output import MaterializedView, Output, Sink, StreamingTable, Table, TemporaryView
from pyspark.pipelines.source_code_location import SourceCodeLocation
from pyspark.sql import SparkSession

from nosync.bridge.pipeline_statements import column_name_of, column_of
from nosync.bridge.relations import name_parts
from nosync.model.errors import Invalid
from nosync.pipelines.definitions import Capture, Dataset, Key, Kind, Project, Query
from nosync.pipelines.sql_files import register_sql

KINDS: dict[type[Output], Kind] = {
    MaterializedView: "materialized view",
    StreamingTable: "streaming table",
    TemporaryView: "temporary view",
    Sink: "sink",
}


class Registry(GraphElementRegistry):
    """Collects a project."""

    def __init__(self, spark: SparkSession, project: Project, folder: Path) -> None:
        self.spark, self.project, self.folder = spark, project, folder

    def register_output(self, output: Output) -> None:
        kind, where = KINDS[type(output)], self._where(output.source_code_location)
        more: dict[str, Any] = {}
        if isinstance(output, Table):
            more = {
                "properties": dict(output.table_properties),
                "partition_by": tuple(output.partition_cols or ()),
                "cluster_by": tuple(output.cluster_by or ()),
                "schema": output.schema,
                "format": output.format,
            }
        elif isinstance(output, Sink):
            more = {"format": output.format, "options": dict(output.options)}
        key = self._key(output.name, alone=kind in ("temporary view", "sink"), where=where)
        self.project.define(Dataset(key, kind, where, output.comment, **more))

    def register_flow(self, flow: PipelineFlow) -> None:
        where = self._where(flow.source_code_location)
        target = self._target(flow.target)
        name = self.project.namespace.short(target) if flow.name == flow.target else flow.name
        self.project.fill(Query(name, target, flow.func, self.project.namespace, where, dict(flow.spark_conf)))

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        target, where = self._target(flow.target), self._where(flow.source_code_location)
        name = self.project.namespace.short(target) if flow.name in (None, flow.target) else str(flow.name)
        names = {
            "keys": flow.keys,
            "columns": flow.column_list,
            "left_out": flow.except_column_list,
            "tracked": flow.track_history_column_list,
            "untracked": flow.track_history_except_column_list,
        }
        self.project.fill(
            Capture(
                name,
                target,
                lambda: self.spark.readStream.table(flow.source),
                self.project.namespace,
                where,
                dict(flow.spark_conf),
                sequence=column_of(flow.sequence_by),
                deletes=None if flow.apply_as_deletes is None else column_of(flow.apply_as_deletes),
                history=str(flow.stored_as_scd_type) == "2",
                **{name: tuple(map(column_name_of, columns or ())) for name, columns in names.items()},
            )
        )

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        register_sql(self.spark, self.project, sql_text, str(file_path))

    def _key(self, name: str, alone: bool, where: str) -> Key:
        parts = name_parts(self.spark, name)
        if alone and len(parts) > 1:
            raise Invalid(f'"{name}" ({where}) has a database, which a temporary view or a sink has not', hint="Name it by one word.")
        return self.project.namespace.alone(parts) if alone else self.project.namespace.whole(parts)

    def _target(self, name: str) -> Key:
        """What a flow writes into: a sink and a temporary view have no database."""
        parts = self.project.namespace.alone(name_parts(self.spark, name))
        return parts if parts in self.project.datasets else self.project.namespace.whole(parts)

    def _where(self, location: SourceCodeLocation) -> str:
        path = Path(location.filename)
        shown = path.relative_to(self.folder) if path.is_relative_to(self.folder) else path
        return f"{shown}:{location.line_number}"
