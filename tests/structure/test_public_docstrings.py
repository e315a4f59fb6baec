"""What users hold in their hands says what it does, in which units, and how it refuses."""

import builtins
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

from tests.structure.test_layers import ROOT, modules

from horolog.domain import errors

PLACES = ("horolog", "horolog.testing", "horolog.fastapi", "horolog.django")
"""The modules that users import from."""

REFERENCE = re.compile(r":(?:class|meth|func|mod|data|attr):`~?\.?([\w.]+)`")


def public() -> Iterator[tuple[str, Any]]:
    """Every public name, with what it stands for."""
    for place in PLACES:
        module = importlib.import_module(place)
        for name in module.__all__:
            yield f"{place}.{name}", getattr(module, name)


def functions() -> Iterator[tuple[str, Any, str]]:
    """Every public function, method and property, and how a class is made: each with its name and
    all that is said of it."""
    for name, found in public():
        if inspect.isfunction(found):
            yield name, found, said_of(found)
        elif inspect.isclass(found):
            about = said_of(found)
            yield name, found, about
            for member in sorted(members(found)):
                function = inspect.getattr_static(found, member)
                if isinstance(function, property):
                    function = function.fget
                function = getattr(function, "__func__", function)
                if inspect.isfunction(function):
                    yield f"{name}.{member}", function, f"{said_of(function)}\n{about}"


def members(of: type[Any]) -> set[str]:
    """What a class of ours has that is public, from its bases too, but for those of others."""
    ours = (base for base in of.__mro__ if base.__module__.startswith("horolog"))
    return {name for base in ours for name in vars(base) if not name.startswith("_")}


def said_of(thing: Any) -> str:
    """Its docstring, with those that it refers to in its own module."""
    text = inspect.getdoc(thing) or ""
    beside = vars(sys.modules[thing.__module__])
    others = (beside.get(name) for name in REFERENCE.findall(text))
    return "\n".join([text, *(inspect.getdoc(other) or "" for other in others if other)])


def test_everything_public_has_a_docstring() -> None:
    silent = [name for name, found in public() if inspect.isroutine(found) and not found.__doc__]
    for name, found in public():
        if inspect.isclass(found):
            own = vars(found).get("__doc__") or ""
            made = own.startswith(f"{found.__name__}(")  # by dataclasses, of the fields alone
            silent += [name] * (not own or made)
    silent += [name for name, function, _ in functions() if not inspect.getdoc(function)]
    assert silent == []


def test_a_number_that_may_be_a_duration_or_a_rate_says_so() -> None:
    """By ``_s`` at the end of its name, or by the word."""
    unclear = [
        f"{name}({parameter.name})"
        for name, function, about in functions()
        if inspect.isfunction(function) or "__init__" in vars(function)
        for parameter in inspect.signature(function).parameters.values()
        if "float" in str(parameter.annotation)
        and not parameter.name.endswith("_s")
        and "second" not in about
    ]
    assert unclear == []


def test_errors_that_are_announced_are_errors() -> None:
    known = vars(errors).keys() | vars(builtins).keys() | {"KeyError"}
    unknown = [
        f"{name}: {error}"
        for name, _, about in functions()
        for announced in re.findall(r"[Rr]aises ([^.]*)", about)
        for error in re.findall(r"``([A-Z][a-z]\w+)``", announced)
        if error not in known
    ]
    assert unknown == []


def test_docstrings_refer_to_what_there_is() -> None:
    """From any layer: a reference outlives what it named, since nothing follows it."""
    layers = ("domain", "projections", "application", "infrastructure", "interface")
    sources = {path: path.read_text() for layer in layers for path in modules(layer)}
    defined = re.compile(r"^ *(?:class|def|async def) (\w+)|^ *(\w+)(?::[^=\n]+)? =", re.MULTILINE)
    names = {name for text in sources.values() for pair in defined.findall(text) for name in pair}
    names |= {path.stem for path in sources}
    dead = [
        f"{path.relative_to(ROOT)}: {reference}"
        for path, text in sources.items()
        for reference in REFERENCE.findall(text)
        if not (leads(reference) if reference.startswith("horolog.") else named(reference, names))
    ]
    assert dead == []


def named(reference: str, names: set[str]) -> bool:
    """Whether something of ours has each part of a name that only its module knows whole."""
    parts = reference.split(".")
    return parts[0] in sys.stdlib_module_names or names.issuperset(parts)


def leads(reference: str) -> bool:
    """Whether a dotted name leads to a module of ours or to something in one."""
    parts = reference.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found is not None
    return False
