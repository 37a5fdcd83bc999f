"""What reading a file does, for an application and for the test that knows what it should have read."""

from typing import Any


def read(file: Any, steps: str) -> list[bytes]:
    """What these of its methods give, one after the other."""
    told: list[bytes] = []
    for step in steps.split("; "):
        found = eval(f"file.{step}", {"file": file})
        told += found if isinstance(found, list) else [found]
    return told
