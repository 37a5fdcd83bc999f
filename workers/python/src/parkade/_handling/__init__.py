"""Runs the application's code for a request: `handling` puts the parts together.

`compiling` makes one function of a route and its hooks; `results` and `failures` turn its results and exceptions into
answers; `continuations` calls functions after a wait, `job_access` asks which clients may access a job, `lifespan` runs
the hooks at the start and at the end.
"""
