"""The same with coroutines."""

from __future__ import annotations

from costs import make

app = make(asynchronous=True)
