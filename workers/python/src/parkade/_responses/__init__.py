"""From what a handler returns to the bytes of a RESPONSE; and the pages for errors that no error handler answers."""
