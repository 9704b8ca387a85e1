# SPDX-License-Identifier: Apache-2.0
"""Signatures of native classes and functions, which `inspect.signature` cannot find by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    from inspect import Signature


def of(function: Any) -> Signature:
    """Of a native function, from the text that nanobind keeps; annotations stay text."""
    import ast
    import inspect

    text = function.__nb_signature__[0][0]
    (definition,) = ast.parse(f"{text}: ...").body
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"{function!r} has no signature")
    given = definition.args
    first_default = len(given.args) - len(given.defaults)
    defaults = [*[None] * first_default, *given.defaults, *given.kw_defaults]
    return inspect.Signature(
        [
            inspect.Parameter(
                one.arg,
                inspect.Parameter.KEYWORD_ONLY
                if one in given.kwonlyargs
                else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if default is None else ast.literal_eval(default),
                annotation=ast.unparse(one.annotation)
                if one.annotation
                else inspect.Parameter.empty,
            )
            for one, default in zip([*given.args, *given.kwonlyargs], defaults, strict=True)
        ],
        return_annotation=ast.unparse(definition.returns) if definition.returns else None,
    )


def mismatch(function: Any, values: list[Any], named: dict[str, Any]) -> str:
    """Why arguments do not fit a native function, in the words of Python's own functions."""
    name = function.__qualname__
    try:
        bound = of(function).bind(*values, **named)
    except TypeError as error:
        return f"{name}(): {error}"
    given = ", ".join(
        f"{key} is a {type(value).__name__}"
        for key, value in bound.arguments.items()
        if key != "self"
    )
    wanted = ", ".join(
        f"{one.name}: {one.annotation}"
        for one in of(function).parameters.values()
        if one.name != "self"
    )
    return f"{name}(): {given}: expected {wanted}"


class OfInit:
    """A class attribute `__signature__`: of the class's native `__init__`, without `self`."""

    def __get__(self, _instance: object, owner: type) -> Signature:
        signature = of(vars(owner)["__init__"])
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def give(place: Any, *names: str) -> None:
    """Gives native functions and methods, by name, their signatures; again, it changes nothing."""
    for name in names:
        kind = type(vars(place)[name]).__name__
        if kind in ("nb_func", "nb_method"):
            member = _native.with_signature(vars(place)[name], kind == "nb_method")
            setattr(place, name, member)


def give_class(native_class: Any, *methods: str) -> None:
    """Gives a native class and those methods of it their signatures."""
    give(native_class, *methods)
    native_class.__signature__ = OfInit()


# Before others import it from there.
give(_native, "pinned")
