// The worker's end of a link without I/O: bytes in, events out. Written from PROTOCOL.md alone, it has none of the optional
// parts: it reads HELLO, REQUEST, DATA, CANCEL, PING and GOODBYE.

'use strict'

const msgpack = require('./msgpack')

const KINDS = {
  HELLO: 0x01, READY: 0x02, FAILED: 0x03, REQUEST: 0x10, RESPONSE: 0x11, DATA: 0x12, WINDOW: 0x13, ERROR: 0x14,
  CANCEL: 0x23, PING: 0x32, PONG: 0x33, GOODBYE: 0x34,
}
const NAMES = Object.fromEntries(Object.entries(KINDS).map(([name, kind]) => [kind, name]))
const WRITTEN_HERE = ['READY', 'FAILED', 'RESPONSE', 'ERROR', 'PONG']
const BEFORE_READY = ['HELLO', 'PING', 'GOODBYE']
const [HEADER_SIZE, FRAME_MAX, INLINE_MAX, WINDOW, BRANCH_FIRST, MORE] = [12, 1048576, 65536, 262144, 2 ** 31, 1]
const VERSION = 1

class Violation extends Error {}

function frame(name, stream, payload) {
  const header = Buffer.alloc(HEADER_SIZE)
  header.writeUInt32BE(payload.length, 0)
  header[4] = KINDS[name]
  header.writeUInt32BE(stream, 8)
  return Buffer.concat([header, payload])
}

// What each element of a payload is; there may be more, which are ignored.
const isText = (value) => typeof value === 'string'
const isCount = (value) => (Number.isInteger(value) || typeof value === 'bigint') && value >= 0
const isPort = (value) => isCount(value) && value <= 65535
const isMap = (value) => value instanceof Map
const isSeconds = (value) => (typeof value === 'number' || typeof value === 'bigint') && value >= 0 && value < 1e15
const isBytes = (value) => Buffer.isBuffer(value)
const orNil = (is) => (value) => value === null || is(value)
const arrayOf = (is) => (value) => Array.isArray(value) && value.every(is)
const isHeaders = (value) =>
  Array.isArray(value) && value.length % 2 === 0 && value.every((part, at) => (at % 2 ? isBytes(part) : isText(part)))
const HEAD = [isText, isText, isText, isHeaders, isText, isText, isText, isText, isPort, isText, isPort]
const isHead = (value) =>
  Array.isArray(value) && value.length >= 7 && HEAD.every((is, at) => at >= value.length || is(value[at]))
const isInline = (value) => isBytes(value) && value.length <= INLINE_MAX
const PAYLOADS = {
  HELLO: [isCount, isCount, isCount, isMap],
  REQUEST: [orNil(isCount), arrayOf(isText), orNil(isSeconds), orNil(isInline), isHead],
  CANCEL: [isText],
  PING: [isCount],
  GOODBYE: [isText, isText],
}

function read(name, stream, payload) {
  const isOfLink = ['HELLO', 'PING', 'GOODBYE'].includes(name)
  if (isOfLink !== (stream === 0)) throw new Violation(`${name} on stream ${stream}`)
  if (name === 'DATA') {
    if (payload.length > INLINE_MAX) throw new Violation(`DATA has at most ${INLINE_MAX} bytes`)
    return payload
  }
  let value
  try {
    value = msgpack.decode(payload)
  } catch (error) {
    throw new Violation(`${name}: ${error.message}`)
  }
  const elements = PAYLOADS[name]
  if (!Array.isArray(value) || value.length < elements.length || !elements.every((is, at) => is(value[at]))) {
    throw new Violation(`${name}: the payload is not the array that was agreed on`)
  }
  return value
}

// Events: {reply: bytes} to be written; {opened: stream, request}, whose body is complete; {ended: code}.
class Session {
  constructor(pid) {
    Object.assign(this, { pid, phase: 'new', rest: Buffer.alloc(0), highest: 0, streams: new Map() })
  }

  receive(bytes) {
    const events = []
    this.rest = Buffer.concat([this.rest, bytes])
    try {
      while (this.phase !== 'over' && this.rest.length >= HEADER_SIZE) {
        const length = this.rest.readUInt32BE(0)
        if (length > FRAME_MAX) throw new Violation(`a frame has at most ${FRAME_MAX} bytes`)
        if (this.rest.length < HEADER_SIZE + length) break
        const [kind, flags, stream] = [this.rest[4], this.rest[5], this.rest.readUInt32BE(8)]
        const payload = this.rest.subarray(HEADER_SIZE, HEADER_SIZE + length)
        this.rest = this.rest.subarray(HEADER_SIZE + length)
        if (kind in NAMES && NAMES[kind] !== 'WINDOW') this.take(NAMES[kind], Boolean(flags & MORE), stream, payload, events)
      }
    } catch (error) {
      if (!(error instanceof Violation)) throw error
      this.phase = 'over'
      events.push({ reply: this.goodbye('violation', error.message) }, { ended: 'violation', text: error.message })
    }
    return events
  }

  take(name, more, stream, payload, events) {
    if (WRITTEN_HERE.includes(name)) throw new Violation(`${name} from the wrong end`)
    const told = read(name, stream, payload)
    if (this.phase !== 'ready' && !BEFORE_READY.includes(name)) throw new Violation(`${name} before its time`)
    if (name === 'PING') events.push({ reply: frame('PONG', 0, payload) })
    else if (name === 'HELLO') this.hello(told, events)
    else if (name === 'REQUEST') this.request(more, stream, told, events)
    else if (name === 'DATA') this.data(more, stream, told, events)
    else if (name === 'CANCEL') this.cancel(stream, events)
    else this.end(told[0], told[1], events)
  }

  end(code, text, events) {
    this.phase = 'over'
    events.push({ ended: code, text })
  }

  hello([least, most, , info], events) {
    if (this.phase !== 'new') throw new Violation('a second HELLO')
    const own = new Map([['language', 'javascript'], ['runtime', process.versions.node], ['pid', this.pid]])
    events.push({ reply: frame('HELLO', 0, msgpack.encode([VERSION, VERSION, 0, own])) })
    if (least <= VERSION && VERSION <= most) {
      this.phase = 'greeted'
      return events.push({ greeted: info })
    }
    events.push({ reply: this.goodbye('version', `this end speaks ${VERSION}`) })
    return this.end('version', `the core speaks ${least} to ${most}`, events)
  }

  request(more, stream, [, , , body, head], events) {
    if (stream <= this.highest || stream >= BRANCH_FIRST) throw new Violation(`stream ${stream} is opened too late`)
    this.highest = stream
    const [method, path, query, headers, client, scheme, version] = head
    const opened = { method, path, query, headers, client, scheme, version, body: body || Buffer.alloc(0) }
    this.streams.set(stream, { opened, arriving: more ? [] : null, left: WINDOW, taken: 0 })
    if (!more) events.push({ opened: stream, request: opened })
  }

  data(more, stream, bytes, events) {
    this.known(stream, 'DATA')
    const held = this.streams.get(stream)
    if (!held) return // it crossed the closing frame
    if (!held.arriving) throw new Violation(`DATA on stream ${stream}, on which none follows`)
    held.left -= bytes.length
    held.taken += bytes.length
    if (held.left < 0) throw new Violation(`DATA beyond the window of stream ${stream}`)
    held.arriving.push(bytes)
    if (more && held.left === 0) {
      events.push({ reply: frame('WINDOW', stream, msgpack.encode([held.taken])) })
      Object.assign(held, { left: held.taken, taken: 0 })
    }
    if (more) return
    held.opened.body = Buffer.concat(held.arriving)
    held.arriving = null
    events.push({ opened: stream, request: held.opened })
  }

  // What has its body is running, or has run. It is answered as if nothing had happened, and the core drops the answer.
  cancel(stream, events) {
    this.known(stream, 'CANCEL')
    if (this.streams.get(stream)?.arriving) events.push({ reply: this.error(stream, 'cancelled', '') })
  }

  known(stream, name) {
    if (stream > this.highest) throw new Violation(`${name} on stream ${stream}, which was never opened`)
  }

  ready() {
    this.phase = 'ready'
    return frame('READY', 0, msgpack.encode([1, new Map([['interface', 'native'], ['fallback', true]])]))
  }

  failed(text) {
    return frame('FAILED', 0, msgpack.encode([text.slice(-16384)]))
  }

  respond(stream, status, headers, body) {
    const size = body === null ? 0 : Buffer.byteLength(body)
    if (size > INLINE_MAX) throw new Error(`the body of a response has at most ${INLINE_MAX} bytes here, not ${size}`)
    const payload = msgpack.encode([status, headers, body])
    if (payload.length > FRAME_MAX) throw new Error(`a response has at most ${FRAME_MAX} bytes with its headers`)
    this.streams.delete(stream)
    return frame('RESPONSE', stream, payload)
  }

  error(stream, reason, text) {
    this.streams.delete(stream)
    return frame('ERROR', stream, msgpack.encode([reason, text.slice(-16384)]))
  }

  goodbye(code, text) {
    return frame('GOODBYE', 0, msgpack.encode([code, text]))
  }
}

module.exports = { Session, Violation, KINDS, NAMES, HEADER_SIZE, FRAME_MAX, frame, read }
