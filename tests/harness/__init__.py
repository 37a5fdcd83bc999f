"""The tools of the tests: a running server, clients that send exact bytes, a worker that the test controls."""
