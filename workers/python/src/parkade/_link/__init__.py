"""The skins between the session and the pipes: `blocking` for plain functions, `concurrent` for coroutines.

Both begin with `process`.
"""
