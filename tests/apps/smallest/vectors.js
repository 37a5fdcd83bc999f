// Runs the vectors of the protocol that need no optional part: node vectors.js FOLDER. Prints a line for each that fails.

'use strict'

const fs = require('fs')
const path = require('path')
const { Session, Violation, KINDS, NAMES, HEADER_SIZE, FRAME_MAX, frame, read } = require('./session')
const msgpack = require('./msgpack')

const folder = process.argv[2]
const [counts, failed] = [{ frames: 0, sessions: 0 }, []]

const load = (kind) =>
  fs.readdirSync(path.join(folder, kind)).flatMap((file) =>
    [JSON.parse(fs.readFileSync(path.join(folder, kind, file)))].flat().map((vector) => ({ ...vector, file })))
const isForAll = (vector) => vector.needs.length === 0
const unhex = (text) =>
  Buffer.concat(text.split(/\s+/).filter(Boolean).map((word) => {
    const [bytes, count] = word.split('*')
    return Buffer.concat(Array(Number(count || 1)).fill(Buffer.from(bytes, 'hex')))
  }))
const inPieces = (bytes, size) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))

function check(kind, vector, how, run) {
  counts[kind]++
  try {
    run()
  } catch (error) {
    failed.push(`${vector.file}: ${vector.name}, ${how}: ${error.message}`)
  }
}

function assert(isSo, what) {
  if (!isSo) throw new Error(what)
}

// The frames in the bytes.
function framesOf(bytes) {
  const frames = []
  for (let at = 0; at + HEADER_SIZE <= bytes.length;) {
    const length = bytes.readUInt32BE(at)
    if (length > FRAME_MAX) throw new Violation('too long')
    frames.push({ name: NAMES[bytes[at + 4]], stream: bytes.readUInt32BE(at + 8), bytes: bytes.subarray(at, at + HEADER_SIZE + length) })
    at += HEADER_SIZE + length
  }
  return frames
}

// Integers beyond 2^53 lose their last digits in JSON.
const shown = (value) =>
  JSON.stringify(value, (_, part) => {
    if (part instanceof Map) return Object.fromEntries(part)
    if (part && part.type === 'Buffer') return { bin: Buffer.from(part.data).toString('hex') }
    return typeof part === 'bigint' ? Number(part) : part
  })

// The payload of a vector, with `{"bin": …}` as bytes.
function payloadOf(written) {
  if (Array.isArray(written)) return written.map(payloadOf)
  if (written === null || typeof written !== 'object') return written
  if (Object.keys(written).join() === 'bin') return unhex(written.bin)
  return new Map(Object.entries(written).map(([key, value]) => [key, payloadOf(value)]))
}

// JSON tells neither 2 from 2.0 nor integers beyond 2^53 from their neighbours.
const isExact = (told) => !/\d[.]\d|\d{16}/.test(JSON.stringify(told))
const KNOWN = ['core', 'target', 'threads']
function readsFrame(vector) {
  const found = framesOf(unhex(vector.hex)).filter(({ name }) => name)
  assert(found.length === 1, 'not one frame')
  const [{ name, stream, bytes }] = found
  if (name === 'WINDOW' || !(name in { HELLO: 1, REQUEST: 1, DATA: 1, CANCEL: 1, PING: 1, GOODBYE: 1 })) throw new Violation(name)
  const told = read(name, stream, bytes.subarray(HEADER_SIZE))
  if (!vector.frame) return
  const expected = payloadOf(vector.frame.payload)
  const length = (value) => (name === 'REQUEST' ? 5 : value.length)
  let plain = Array.isArray(told) ? told.slice(0, length(expected)) : told
  if (name === 'REQUEST') plain[4] = plain[4].slice(0, expected[4].length)
  if (name === 'HELLO') plain[3] = new Map([...plain[3]].filter(([key]) => KNOWN.includes(key)))
  assert(shown(plain) === shown(expected), `${shown(plain)} is not ${shown(expected)}`)
}

for (const vector of load('frames').filter(isForAll)) {
  if (vector.from === 'core') {
    check('frames', vector, 'read', () => {
      if (vector.frame) return readsFrame(vector)
      try {
        readsFrame(vector)
      } catch (error) {
        return assert(error instanceof Violation, error.message)
      }
      throw new Error('it is not refused')
    })
  } else if (vector.frame && !vector.reading && vector.frame.kind in KINDS && isExact(vector.frame)) {
    check('frames', vector, 'written', () => {
      const { kind, stream, payload } = vector.frame
      assert(frame(kind, stream, msgpack.encode(payloadOf(payload))).equals(unhex(vector.hex)), 'other bytes')
    })
  }
}

// Has the session write what the worker of a conversation wrote.
function play(session, bytes) {
  for (const { name, stream, bytes: written } of framesOf(bytes)) {
    const told = written.length > HEADER_SIZE && name ? msgpack.decode(written.subarray(HEADER_SIZE)) : []
    if (name === 'READY') session.ready()
    if (name === 'FAILED') session.failed(told[0])
    if (name === 'RESPONSE' && session.streams.has(stream)) assert(session.respond(stream, ...told).equals(written), name)
    if (name === 'ERROR' && session.streams.has(stream)) assert(session.error(stream, ...told).equals(written), name)
  }
}

function expectedEnd({ ends, steps }) {
  if (ends.startsWith('violation')) return 'violation'
  if (ends !== 'closed') return ''
  const said = steps.flatMap(({ from, hex }) => framesOf(unhex(hex)).filter(({ name }) => name === 'GOODBYE').map((goodbye) => ({ from, ...goodbye })))
  const code = msgpack.decode(said[0].bytes.subarray(HEADER_SIZE))[0]
  return said[0].from === 'core' || code === 'version' ? code : ''
}

for (const vector of load('sessions').filter((each) => isForAll(each) && !each.ends.includes('by worker'))) {
  for (const size of [FRAME_MAX, 1]) {
    check('sessions', vector, size === 1 ? 'a byte at a time' : 'whole', () => {
      const session = new Session(1)
      const events = []
      for (const { from, hex } of vector.steps) {
        const bytes = unhex(hex)
        const step = bytes.length > 20000 && size === 1 ? 977 : size
        if (from === 'core') inPieces(bytes, step).forEach((piece) => events.push(...session.receive(piece)))
        else play(session, bytes)
      }
      const ended = events.filter((event) => event.ended).map((event) => event.ended).join()
      // This worker may have granted more than that of the conversation: then nothing is beyond its window.
      const granted = events.some(({ reply }) => reply && framesOf(reply).some(({ name }) => name === 'WINDOW'))
      const expected = granted && vector.ends.includes(': window:') ? '' : expectedEnd(vector)
      assert(ended === expected, `it ends with "${ended}"`)
    })
  }
}

failed.forEach((line) => console.error(line))
console.log(JSON.stringify(counts))
process.exit(failed.length ? 1 : 0)
