"""Python functions inside Spark's plans: taken out, and put back wrapped."""

from collections.abc import Callable
from typing import Any

from pyspark import Broadcast
from pyspark.serializers import CPickleSerializer
from pyspark.sql.udf import _wrap_function

from nosync.bridge.catalyst import Catalyst, Java, children, data_type, items, kind

Function = Callable[..., Any]
Wrap = Callable[[str, Function], Function]


def function_of(catalyst: Catalyst, call: Java) -> Function:
    """The user's function, out of an expression that calls it."""
    loads: Callable[[bytes], Any] = CPickleSerializer().loads
    loaded = loads(bytes(call.func().command().toArray(catalyst.jvm.scala.reflect.ClassTag.Byte())))
    if isinstance(loaded, Broadcast):  # what is large travels apart
        loaded = loads(loaded.value)
    function: Function = loaded[0]
    return function


def with_functions_wrapped(catalyst: Catalyst, plan: Java, wrap: Wrap) -> Java:
    """A node that evaluates Python functions, with each of them wrapped; `wrap` also gets the function's name."""
    calls = catalyst.seq([_wrapped(catalyst, call, wrap) for call in items(plan.udfs())])
    return _with_part(catalyst, plan, 0, calls)


def _wrapped(catalyst: Catalyst, call: Java, wrap: Wrap) -> Java:
    inner = children(call)
    if any(kind(child) == "PythonUDF" for child in inner):  # a function of what another returns
        call = catalyst.with_children(call, [_wrapped(catalyst, child, wrap) if kind(child) == "PythonUDF" else child for child in inner])
    function = wrap(str(call.name()), function_of(catalyst, call))
    return _with_part(catalyst, call, 1, _wrap_function(catalyst.spark.sparkContext, function, data_type(call)))


def _with_part(catalyst: Catalyst, node: Java, place: int, part: Java) -> Java:
    """A copy of a node of Catalyst's with one of its parts replaced."""
    parts = catalyst.array([node.productElement(i) if i != place else part for i in range(node.productArity())])
    return node.makeCopy(parts)
