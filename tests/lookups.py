"""Classes of the JVM, each looked for once.

py4j looks a class up whenever it is named, and for a package, or a name without one, the JVM searches all of Spark's jars several times: a
fifth of what the JVMs of the suite did was that. What a name stands for does not change, once it stands for a class or a static method.
"""

from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

Lookup = Callable[[Any, str], Any]


def remembered(look_up: Lookup) -> Lookup:
    """The same, with what was found kept by the connection to the JVM. A package is what py4j takes every unknown name for: only those in
    small letters are believed.
    """

    def found(owner: Any, name: str) -> Any:
        facts = vars(owner)
        known = vars(facts["_gateway_client"]).setdefault("found_by_name", {})
        key = type(owner), facts.get("_fqn"), name
        if key not in known:
            answer = look_up(owner, name)
            if not (isinstance(answer, JavaClass | JavaMember) or (isinstance(answer, JavaPackage) and name.islower())):
                return answer
            known[key] = answer
        return known[key]

    return found


def remember() -> None:
    """In this process, from now on."""
    for owner in (JVMView, JavaPackage, JavaClass):
        owner.__getattr__ = remembered(owner.__getattr__)
