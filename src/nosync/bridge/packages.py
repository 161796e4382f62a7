"""Classes of the JVM by their whole names.

py4j asks for `org`, `org.apache` and so on down to the class, and for each of them that is no class the JVM searches all of Spark's jars,
ten times over: milliseconds. A whole name is found at once.
"""

from typing import Any

from pyspark.sql import SparkSession


class Packages:
    """A package, or all of them: parts in small letters are believed to be packages, and nobody is asked. A class is looked for once."""

    def __init__(self, jvm: Any, name: str = "") -> None:
        self._jvm, self._name = jvm, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        whole = f"{self._name}.{name}" if self._name else name
        found = Packages(self._jvm, whole) if name.islower() and "." not in name else getattr(self._jvm, whole)
        setattr(self, name, found)
        return found


def packages(spark: SparkSession) -> Any:
    return Packages(spark._jvm)
