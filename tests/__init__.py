"""Parkade as its users meet it: a running server, and what it says over HTTP."""
