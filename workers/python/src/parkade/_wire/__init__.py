"""Bytes to frames and back: the protocol's codec (protocol/PROTOCOL.md, sections 1 to 3).

It knows no socket and no state.
"""
