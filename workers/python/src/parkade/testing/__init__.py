"""Runs an application in a test without processes and sockets, its waits included, on a clock that the test moves:

```python
with Client(app) as client:
    parked = client.get("/echo", params={"field": "hi"})
    assert parked.parked
    client.advance(2)
    assert parked.text == "You said: hi"
```
"""

from ._client import Client, RequestOptions
from ._cookies import Cookies
from ._jobs import Enqueued
from ._response import Parked, Response
from ._rows import Asked

__all__ = ["Asked", "Client", "Cookies", "Enqueued", "Parked", "RequestOptions", "Response"]


def __dir__() -> list[str]:
    return __all__
