"""What an answer may wait for: a timer, the messages of a channel, and `functions` that are called after the wait.

Queries are in `_sql`, the results of jobs in `jobs`.
"""
