"""The worker's end of a link without any I/O: `session` turns bytes into `events` and gives the bytes to write.

`streams` has the states of one stream.
"""
