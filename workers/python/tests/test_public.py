"""What `import parkade` shows, and what it says of itself."""

from __future__ import annotations

import inspect

import pytest

import parkade
from parkade import Headers, Job, Message, Request, Response, query


def test_the_package_has_a_version() -> None:
    assert parkade.__version__
    with pytest.raises(AttributeError, match="nothing"):
        parkade.nothing  # noqa: B018


def test_errors_that_a_log_shows_are_exported() -> None:
    assert issubclass(parkade.InvalidResult, parkade.ParkadeError)


@pytest.mark.parametrize("kind", [Request, Response, Headers, Job, Message])
def test_public_attributes_have_a_description(kind: type) -> None:
    for name, value in vars(kind).items():
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            assert value.__doc__, name
    for name in ("carried", "copied", "flat", "of_request"):
        assert not hasattr(kind, name)


def test_messages_have_the_right_article() -> None:
    with pytest.raises(TypeError, match="not an int"):
        query(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a bytes"):
        query(b"")  # type: ignore[arg-type]
