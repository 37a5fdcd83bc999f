"""What the tests are made of: a running server, clients that send exact bytes, a worker that does as it is told."""
