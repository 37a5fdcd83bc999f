"""The request as a handler sees it, and readers for its parts: forms, cookies, character sets, percent-encoding."""
