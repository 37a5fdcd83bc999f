"""Where the code of the application was loaded from, for `parkade dev`: folders of packages, and files of modules that
are in none, outside what is installed.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from ._limits import WATCHED_BYTES_MAX, WATCHED_COUNT_MAX
from ._log import is_our_code

_INSTALLED = ("site-packages", "dist-packages")
"""Folders of what pip, apt and others install, wherever they are."""


def watched(error: BaseException | None = None) -> list[str]:
    """Absolute paths. `error`: why the application did not load; the files that it names count, too."""
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    files = {file for module in modules if (file := _file(module)) is not None}
    files |= set(_files_of(error))
    libraries = _libraries()
    paths = {_whole(file) for file in files if _is_own(file, libraries)}
    outermost = [path for path in sorted(paths) if not any(above in paths for above in _above(path))]
    return [path for path in outermost if _fits(path)][:WATCHED_COUNT_MAX]


def _file(module: ModuleType) -> str | None:
    file = getattr(module, "__file__", None)
    return os.path.realpath(file) if isinstance(file, str) else None


def _files_of(error: BaseException | None) -> Iterator[str]:
    """Those of an exception and of its causes: a module that does not load is not in `sys.modules`."""
    while error is not None:
        if isinstance(error, SyntaxError) and error.filename:
            yield os.path.realpath(error.filename)
        trace = error.__traceback__
        while trace is not None:
            yield os.path.realpath(trace.tb_frame.f_code.co_filename)
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def _is_own(file: str, libraries: Iterable[str]) -> bool:
    if not os.path.isfile(file) or is_our_code(file) or any(part in _INSTALLED for part in Path(file).parts):
        return False
    return not any(file.startswith(folder + os.sep) for folder in libraries)


def _libraries() -> set[str]:
    usual = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return {os.path.realpath(path) for path in (*usual, site.getusersitepackages()) if path}


def _whole(file: str) -> str:
    """The folder of the outermost package that the file belongs to; the file itself if it belongs to none."""
    path = file
    while os.path.isfile(os.path.join(os.path.dirname(path), "__init__.py")):
        path = os.path.dirname(path)
    return path


def _above(path: str) -> Iterator[str]:
    return (str(parent) for parent in Path(path).parents)


def _fits(path: str) -> bool:
    try:
        return len(path.encode()) <= WATCHED_BYTES_MAX
    except UnicodeEncodeError:  # bytes that are not UTF-8, which the protocol has no way to name
        return False
