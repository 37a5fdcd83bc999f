"""Runs the application's code for a request: `handling` puts the parts together.

`compiling` makes one function of a route and its hooks; `results` and `failures` make answers of what that returns and
raises; `continuations` call functions after a wait, `job_access` asks who may have a job, `lifespan` starts and stops.
"""
