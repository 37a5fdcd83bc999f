"""From what a client sends to a value of the annotated type: `converters` for text, `json` for bodies.

`records` and `decimals` check what msgspec has decoded.
"""
