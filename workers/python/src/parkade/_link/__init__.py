"""The skins between the session and the socket: `blocking` for plain functions, `concurrent` for coroutines.

Both begin with `process`.
"""
