"""What a parameter is annotated with to be taken from a header or a cookie."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Header:
    """A parameter from a header: `agent: Annotated[str, Header("user-agent")]`.

    ```python
    @app.get("/agent")
    def agent(user_agent: Annotated[str, Header()], languages: Annotated[str, Header("accept-language")] = "") -> str:
        return f"{user_agent} {languages}"
    ```

    Without a name it is that of the parameter, with hyphens for underscores. A list takes every value of that name.
    """

    name: str | None = None
    """None is the parameter's own name."""


@dataclass(frozen=True, slots=True)
class Cookie:
    """A parameter from a cookie: `session: Annotated[str, Cookie()]`. Without a name it is that of the parameter."""

    name: str | None = None
    """None is the parameter's own name."""
