"""Black-box tests: Parkade as its users see it, a running server and its responses over HTTP."""
