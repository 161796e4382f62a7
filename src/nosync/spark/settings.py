"""What an answer may depend on besides the input: settings of the session, and the versions of what computes.

Recorded with the declaration, so that no run resumes a home under others without saying so.
"""

import platform

from pyspark.sql import SparkSession

from nosync.bridge.sessions import MAPS_HASHED, java_version, session_settings

# Always recorded, also where they are at their defaults: another version of Spark may have others.
NAMED = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.timestampType",
    "spark.sql.storeAssignmentPolicy",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.files.ignoreInvalidPartitionPaths",
    "spark.sql.files.ignoredPathSegmentRegex",
    "spark.sql.files.archive.reader.enabled",
    "spark.sql.sources.partitionColumnTypeInference.enabled",
    "spark.sql.sources.validatePartitionColumns",
    "spark.sql.columnNameOfCorruptRecord",
    "spark.sql.readSideCharPadding",
    "spark.sql.preserveCharVarcharTypeInfo",
    "spark.sql.charAsVarchar",
    "spark.sql.orc.impl",
    "spark.sql.orc.mergeSchema",
    "spark.sql.hive.convertMetastoreParquet.mergeSchema",
    "spark.sql.parquet.mergeSchema",
    "spark.sql.parquet.respectSummaryFiles",
    "spark.sql.parquet.fieldId.read.enabled",
    "spark.sql.parquet.fieldId.read.ignoreMissing",
    "spark.sql.parquet.ignoreVariantAnnotation",
    "spark.sql.parquet.reader.respectUnknownTypeAnnotation.enabled",
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.parquet.binaryAsString",
    "spark.sql.parquet.int96AsTimestamp",
    "spark.sql.parquet.int96TimestampConversion",
    "spark.sql.parquet.inferTimestampNTZ.enabled",
    "spark.sql.avro.datetimeRebaseModeInRead",
    "spark.sql.icu.caseMappings.enabled",
    "spark.sql.function.concatBinaryAsString",
    "spark.sql.function.eltOutputAsString",
    "spark.sql.binaryOutputStyle",
    "spark.sql.chunkBase64String.enabled",
    "spark.sql.mapZipWithUsesJavaCollections",
    "spark.sql.execution.pythonUDF.arrow.enabled",
    "spark.sql.execution.pythonUDTF.arrow.enabled",
    "spark.sql.execution.pyspark.binaryAsBytes",
)
# Recorded where somebody has set them, but for one that jobs do not leave to the user, and that changes for moments (`hashed_maps`).
FAMILIES = (
    "spark.sql.ansi.",
    "spark.sql.collation.",
    "spark.sql.legacy.",
    "spark.sql.execution.pandas.",
    "spark.sql.execution.pythonUDF.",
    "spark.sql.json.",
    "spark.sql.jsonGenerator.",
    "spark.sql.variant.",
    "spark.sql.csv.",
    "spark.sql.xml.",
)


def settings_of(spark: SparkSession) -> dict[str, str]:
    """By name. Of versions, as much as stands for a change in what is computed: Spark 4.3, Java 17, Python 3.11."""
    versions = {
        "version of Spark": _feature(spark.version),
        "version of Java": java_version(spark),
        "version of Python": _feature(platform.python_version()),
    }
    found = session_settings(spark, FAMILIES, NAMED)
    found.pop(MAPS_HASHED, None)
    return {**found, **versions}


def _feature(version: str) -> str:
    return ".".join(version.split(".")[:2])
