"""Routes: `patterns` match paths, `parameters` binds a handler's arguments, which `sources` find in the request."""
