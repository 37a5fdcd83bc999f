"""Every bound of the worker, with its reason and what happens at it. Those of the wire are PROTOCOL.md's."""

from __future__ import annotations

FRAME_MAX = 1_048_576  # bytes of one payload; then: a violation
INLINE_MAX = 65_536  # bytes of a body inside its frame, of one DATA, of a wait's state; then: DATA, or an error
WINDOW = 262_144  # bytes of DATA under way for a stream and direction; then: the sender waits
EVENT_NAME_MAX = 200  # bytes of an event's name; then: ValueError
# A message of a WebSocket's client in all its pieces: the core's setting is at most this. Then: a violation.
SOCKET_MESSAGE_MAX = 67_108_864  # bytes
# As much as a window: the core keeps a window and a piece of a message that its client has not read.
SOCKET_PIECE = WINDOW  # bytes of one piece of a message that is longer than a frame
SOCKET_MESSAGE_OVERHEAD = 64  # bytes that a message of a WebSocket takes from the window besides its own
SUBPROTOCOLS_MAX = 16  # of a WebSocket that no worker holds; then: ValueError
SUBPROTOCOL_MAX = 200  # bytes of the name of one; then: ValueError
MESSAGE_MAX = 524_288  # bytes of a published message; then: ValueError
JOB_NAME_MAX = 200  # bytes of a job's name, its queue's, its key; then: ValueError, SignatureError
PATH_MAX = 65_536  # bytes of the path of a file, a folder or a request
WATCHED_COUNT_MAX = 200  # paths that `parkade dev` is told to watch; then: the rest is left out
WATCHED_BYTES_MAX = 4_096  # bytes of each: Linux opens no longer path; then: it is left out
CLIENT_NAME_MAX = 4_096  # bytes of a file's name from a client: Linux opens no longer path; then: 404
JOB_VALUE_MAX = 524_288  # bytes of a job's arguments, and of its result; then: ValueError, the attempt fails
# Bytes of a result that goes with a wait. The rest of the state is the job itself. Then: the attempt fails.
JOB_KEPT_MAX = INLINE_MAX - 1_024
JOB_ERROR_MAX = 4_096  # bytes of why an attempt failed, which is stored; then: the beginning is kept
RETRIES_MAX = 1_000_000
PRIORITY_MAX = 1_000  # and the least is as far below 0
PROGRESS_TEXT_MAX = 1_000  # bytes; then: the beginning is kept
CHANNEL_NAME_MAX = 200  # bytes; then: InvalidChannel
NAME_MAX = 1_024  # bytes of a function's name and of a content type; then: SignatureError, ValueError
CREDIT_MAX = 65_536
LOG_TEXT_MAX = 65_536  # bytes of an ERROR's text and of FAILED's; then: the end is kept, where the reason stands
HEADERS_MAX = 65_536  # characters of an answer's headers: more than any client takes; then: 500
CONSTANTS_MAX = 524_288  # bytes of constants in READY, half a frame; then: a worker gives the others

# Under load the core reads about 50 frames at a time, and sends ahead no more than a worker clears in about a
# millisecond. At about 5 µs a request, this credit never limits it.
CREDIT_BLOCKING = 64
# A held stream costs a task, some 3 KB; a coroutine that awaits a wait gives its credit back.
CREDIT_CONCURRENT = 1_024

BRANCH_FIRST = 1 << 31  # the first number of a branch, which this end gives; the core's streams are below
BRANCHES_MAX = 100  # waits of one request beside its first; then: WaitError
# Then the core kills a worker that holds requests, and its application could not clean up.
STOP_MARGIN_SECONDS = 1  # before the end of its grace, in which a worker cancels the coroutines of requests
THREADS_MAX = 1_024  # threads for plain functions of a worker with a loop; then: the core refuses the setting

# Answers whose client reads slowly, put aside by a worker that runs one request at a time; each costs a generator.
SUSPENDED_MAX = 1_024  # then: the next one is broken off as overloaded

# Bytes asked of one recv: larger buffers come from mmap each time, which costs more than a second recv.
RECEIVE_SIZE = 65_536
# Bytes of an answer that are written at once, not with the rest of a turn: the core and the code work at the same time.
WRITE_SIZE_MIN = 32_768
# Answers that are written together, for the same reason: a batch of all would leave the core without work meanwhile.
FLUSH_COUNT = 8

RESULT_WAIT_SECONDS = 20  # for which a script's request waits for the result of a job; then: the next request
# For a response to a script, in addition to the time that the script asked the server to wait. Then: ConnectError.
ADMIN_RESPONSE_SECONDS = 30

FIELDS_MAX = 1_000  # fields of a query or a form, parts of a multipart body; then: 400
PART_HEADER_MAX = 8_192  # bytes of one part's header; then: 400
PART_HEADER_LINES_MAX = 16  # browsers write two or three; then: 400
# Bytes of an urlencoded body: what people type, or a script posts (Rack has the same); files come as multipart.
URLENCODED_MAX = 4_194_304  # then: 413
# File systems take 255; applications put something before the name or after it. Then: it is shortened.
FILENAME_BYTES_MAX = 200  # of the plain name of a file in a form
# Half of what CPython's stack takes at the least, less what stands on it: an application may walk such a value by a
# function that calls itself. Other readers of JSON take 64 to 512.
JSON_DEPTH_MAX = 200  # levels of arrays and objects in a body; then: 400
# Enough to correct a form at once; to find them costs a few times what it takes to read the body.
FAULTS_MAX = 20  # faults of a body that are named; then: the first ones
FAULT_DEPTH_MAX = 4  # records in records that are searched for more than their first fault, since each is read again
# To read a part again takes 1 to 5 µs. Then: the faults that were found so far, or the first one.
FAULT_PARTS_MAX = 10_000  # parts of a body, wrong or not, that are read again
# pydantic takes 1 µs and 600 bytes to describe one, which two bytes of a body can cause. Then: only how many they are.
MODEL_FAULTS_MAX = 1_000
FAULT_VALUE_MAX = 1_000  # bytes of a wrong value that is shown to whoever sent it; then: null
# To make an int of text takes the square of its length: CPython refuses more than 4,300 digits, from 3.10.7 on.
DIGITS_MAX = 4_000  # of an int or a float; of a Decimal before and after its point; then: 422
# A record of the log, of which the core takes 131,072 bytes. Then: it is shortened, a traceback at its beginning.
LOG_RECORD_MAX = 122_880  # bytes
LOG_MESSAGE_MAX = 16_384  # characters, also of an exception's text
LOG_TRACEBACK_MAX = 49_152  # characters
LOG_FIELD_MAX = 4_096  # bytes
LOG_FIELDS_MAX = 32
