"""Applications that were not written for Parkade: WSGI (PEP 3333) and ASGI 3."""
