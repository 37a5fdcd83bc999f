"""Pages from the templates of a folder, by Jinja2 if it is installed. What a template puts into a page is escaped."""

from __future__ import annotations

import importlib
import mimetypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import LoadError
from .response import HTML, Response


class Templates:
    """The templates in a folder, by name. All of them are compiled at once, so that none is compiled for a request.

    `app.templates(folder)` makes one too. Raises `LoadError` without Jinja2 or the folder, and for a template with a
    syntax error.
    """

    folder: Path
    """Where they are."""

    def __init__(
        self,
        folder: Path,
        filters: Mapping[str, Callable[..., Any]] | None = None,
        globals: Mapping[str, Any] | None = None,
    ) -> None:
        if not folder.is_dir():
            raise LoadError(f"there is no folder {folder} for templates")
        try:
            jinja2 = importlib.import_module("jinja2")
        except ModuleNotFoundError as error:
            if error.name != "jinja2":
                raise
            raise LoadError("templates need Jinja2: pip install 'parkade[templates]'") from error
        self.folder = folder
        self._syntax_error: type[Exception] = jinja2.TemplateSyntaxError
        # A worker never sees a template change: `parkade dev`, and a reload, start new ones.
        self._environment: Any = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folder),
            autoescape=_is_markup,
            undefined=jinja2.StrictUndefined,
            auto_reload=False,
            cache_size=-1,
        )
        self._environment.filters.update(filters or {})
        self._environment.globals.update(globals or {})
        self._compile()

    def render(self, name: str, /, **context: Any) -> Response:
        """The page that a template makes of `context`, with the content type that follows from its name.

        Values are escaped, except in `.txt` templates. A value that the template uses and `context` does not have is an
        error. Raises what Jinja2 raises.
        """
        return Response(self.text(name, **context), headers={"content-type": _content_type(name)})

    def text(self, name: str, /, **context: Any) -> str:
        """As `render`, but only the text: for an e-mail, or a message to a channel."""
        return str(self._environment.get_template(name).render(context))

    def _compile(self) -> None:
        for name in self._environment.list_templates(filter_func=_is_template):
            try:
                self._environment.get_template(name)
            except self._syntax_error as error:
                place = f"{getattr(error, 'filename', None) or name}:{getattr(error, 'lineno', 0)}"
                raise LoadError(f"{place}: {error}") from error
            except UnicodeDecodeError as error:
                raise LoadError(f"the template {self.folder / name} is not UTF-8") from error

    def __repr__(self) -> str:
        return f"<Templates {self.folder}>"


_ENDINGS = (".j2", ".jinja", ".jinja2")
_TEXTS = (".html", ".htm", ".xml", ".svg", ".txt", *_ENDINGS)


def _is_template(name: str) -> bool:
    """Whether a file of the folder is compiled when the application loads; pictures may lie there too."""
    return name.endswith(_TEXTS)


def _bare(name: str) -> str:
    return next((name[: -len(ending)] for ending in _ENDINGS if name.endswith(ending)), name)


def _is_markup(name: str | None) -> bool:
    return name is None or not _bare(name).endswith(".txt")


def _content_type(name: str) -> str:
    media = mimetypes.guess_type(_bare(name))[0]
    if media is None:
        return HTML
    return f"{media}; charset=utf-8" if media.startswith("text/") else media
