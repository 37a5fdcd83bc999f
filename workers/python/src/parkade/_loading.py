"""Loads the application that TARGET names: `module:name`, `module`, `path/to/file.py`, or the `manage.py` of a Django
project. The default name is `app`.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, cast

from ._app import App
from ._hosting.interfaces import AsgiCallable, WsgiCallable, is_asgi, is_asgi_2, is_factory, is_wsgi, refuses
from ._log import format_error
from ._suggestions import for_call, for_import
from ._validation.annotations import article_of
from .errors import LoadError


@dataclass(frozen=True, slots=True)
class Asgi3:
    """An application of ASGI."""

    application: AsgiCallable


DJANGO_FILE = "manage.py"

Loaded: TypeAlias = App | WsgiCallable | Asgi3


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the operator says of the application."""

    interface: str = "auto"
    """`native`, `wsgi` or `asgi`; `auto`: the application itself shows it. `psgi` is refused."""
    factory: bool = False
    """The target names a function without parameters, which returns the application."""


def load(target: str, wanted: Wanted = Wanted()) -> Loaded:
    """Imports the target; the folder of the file, or else the working directory, comes first on `sys.path`. Without a
    name, an application of ASGI or WSGI may also be called `application`.

    Raises `LoadError`, with the traceback of the application's own frames when its code raised.
    """
    if wanted.interface == "psgi":
        raise LoadError(f"--interface says psgi, but {target} is a Python application")
    named, found = _found(target, wanted)
    if wanted.factory:
        named, found = f"what {named}() returns", _made(named, found)
    return _as_interface(named, found, wanted)


def _found(target: str, wanted: Wanted) -> tuple[str, Any]:
    """What the target names, and how an error calls it."""
    place, name = _split(target)
    if Path(place).name == DJANGO_FILE and ":" not in target:
        return _found_in_django(Path(place), wanted)
    module = _import_file(Path(place)) if _is_path(place) else _import_module(place)
    found: Any = module
    if ":" not in target and not _has(module, name) and callable(getattr(module, "application", None)):
        name = "application"
    owner = place
    for number, part in enumerate(name.split(".")):
        if not part:
            raise LoadError(f"{target!r} has a dot too many: write module:name, such as shop:app")
        if not _has(found, part):
            raise LoadError(f"{owner} has no {part!r}{_nearest(part, found)}")
        found = getattr(found, part)
        owner += f".{part}" if number else f":{part}"
    return f"{place}:{name}", found


def _found_in_django(manage_file: Path, wanted: Wanted) -> tuple[str, Any]:
    from ._hosting import django_project  # others need not import it

    if not manage_file.is_file():
        raise LoadError(f"there is no file {manage_file.resolve()}")
    _put_first(manage_file.resolve().parent)
    try:
        return django_project.application(manage_file, wants_asgi=wanted.interface == "asgi")
    except LoadError:
        raise
    except BaseException as error:  # the project's settings and modules are code
        raise LoadError(_told(error)) from error


def _made(named: str, factory: Any) -> Any:
    if not callable(factory):
        raise LoadError(f"{named} is {article_of(type(factory).__name__)}, not a function: leave --factory out")
    if not is_factory(factory):
        raise LoadError(
            f"{named} cannot be called without arguments: --factory is for a function that returns the application"
        )
    try:
        made = factory()
    except BaseException as error:  # the function is the application's code
        raise LoadError(_told(error)) from error
    if inspect.iscoroutine(made):
        made.close()
        raise LoadError(f"{named} is an async def: a factory is called before there is an event loop, so write a def")
    return made


def _as_interface(named: str, found: Any, wanted: Wanted) -> Loaded:
    if wanted.interface == "auto":
        return _detected(named, found)
    if wanted.interface == "native":
        if isinstance(found, App):
            return found
        raise LoadError(
            f"--interface says native, but {named} is {article_of(type(found).__name__)}, not a parkade.App"
        )
    if isinstance(found, App) or not callable(found):
        kind = article_of(type(found).__name__)
        interface = wanted.interface
        raise LoadError(
            f"--interface says {interface}, but {named} is {kind}, not an application of {interface.upper()}"
        )
    arguments = ("scope", "receive", "send") if wanted.interface == "asgi" else ("environ", "start_response")
    if refuses(found, len(arguments)):
        raise LoadError(
            f"--interface says {wanted.interface}, but {named} cannot be called with ({', '.join(arguments)}): leave "
            "--interface out, and Parkade finds out which it is"
        )
    return Asgi3(found) if wanted.interface == "asgi" else cast(WsgiCallable, found)


def _detected(named: str, found: Any) -> Loaded:
    if isinstance(found, App):
        return found
    if is_asgi(found):
        return Asgi3(found)
    if is_wsgi(found):
        return cast(WsgiCallable, found)
    if is_factory(found):
        raise LoadError(
            f"{named} takes no arguments, so it is not an application: if it returns the application, add "
            "--factory (in parkade.toml: factory = true)"
        )
    if is_asgi_2(found):
        raise LoadError(
            f"{named} takes only a scope, as in ASGI 2: Parkade runs ASGI 3, where an application is one callable "
            "(scope, receive, send). asgiref.compatibility.guarantee_single_callable converts it"
        )
    kind = article_of(type(found).__name__)
    raise LoadError(f"{named} is {kind}, neither a parkade.App nor an application of ASGI or WSGI")


def _split(target: str) -> tuple[str, str]:
    place, colon, name = target.rpartition(":")
    return (place, name or "app") if colon else (name, "app")


def _is_path(place: str) -> bool:
    return place.endswith(".py") or os.sep in place


def _import_module(name: str) -> ModuleType:
    _put_first(Path.cwd())
    if not name:
        raise LoadError("the target names no module: write module:name, such as shop:app")
    if name.startswith("."):
        raise LoadError(f"{name!r} is relative to no package: write the whole name, such as mysite.shop")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise LoadError(f"there is no module {error.name!r} in {Path.cwd()} or on the path") from error
        raise LoadError(_told(error)) from error
    except BaseException as error:  # an application may well call sys.exit while it is imported
        raise LoadError(_told(error)) from error


def _import_file(path: Path) -> ModuleType:
    """Imports a file under its own name, so that the functions in it can be found by any worker (`.then`)."""
    path = path.resolve()
    if not path.is_file():
        raise LoadError(f"there is no file {path}")
    name = path.stem
    if not name.isidentifier() or (name in sys.modules and getattr(sys.modules[name], "__file__", None) != str(path)):
        raise LoadError(
            f"{path} cannot be imported as {name!r}, which is not a valid module name or is taken: rename it"
        )
    _put_first(path.parent)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise LoadError(_told(error)) from error
    return module


def _told(error: BaseException) -> str:
    return format_error(error, loading=True) + for_call(error, App.__mro__) + for_import(error, _public())


def _public() -> list[str]:
    return dir(sys.modules[__package__])


def _put_first(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _has(value: object, name: str) -> bool:
    try:
        getattr(value, name)
    except AttributeError:
        return False
    return True


def _nearest(name: str, module: object) -> str:
    apps = (
        [key for key, value in vars(module).items() if isinstance(value, App)] if isinstance(module, ModuleType) else []
    )
    near = difflib.get_close_matches(name, [key for key in dir(module) if not key.startswith("_")], 1)
    guess = apps[:1] or near
    return f"; did you mean {guess[0]!r}?" if guess else ""
