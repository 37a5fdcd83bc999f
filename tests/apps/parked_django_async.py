"""The same under ASGI."""

from parked_django import asgi as app

__all__ = ["app"]
