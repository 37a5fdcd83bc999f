// What apps/basic.py does, as far as a worker without any optional part can: the application routes its requests itself.

'use strict'

const crypto = require('crypto')
const fs = require('fs')
const path = require('path')

const PAUSE = 3 // milliseconds
const TEXT = ['content-type', 'text/plain; charset=utf-8']

const text = (body, status = 200) => [status, TEXT, body]
const json = (value, status = 200) => [status, ['content-type', 'application/json'], JSON.stringify(value)]
const bytes = (body) => [200, ['content-type', 'application/octet-stream'], body]

// Waits until the test has opened the gate.
function hold(gate) {
  const file = path.join(process.env.GATES, gate)
  const never = new Int32Array(new SharedArrayBuffer(4))
  while (!fs.existsSync(file)) Atomics.wait(never, 0, 0, PAUSE)
}

function echo({ method, path: raw, query, headers, client, scheme, version, body }) {
  const pairs = []
  for (let at = 0; at < headers.length; at += 2) pairs.push([headers[at], headers[at + 1].toString('latin1')])
  return json({ method, path: raw, query, headers: pairs, client, scheme, version, body: body.toString('latin1') })
}

const ROUTES = [
  ['GET', /^\/hola\/([^/]+)$/, (name) => text(`Hola ${name}`)],
  ['GET', /^\/constant$/, () => text('constant')],
  ['GET', /^\/pid$/, () => text(String(process.pid))],
  ['GET POST PUT PATCH DELETE OPTIONS', /^\/echo$/, (request) => echo(request)],
  ['GET', /^\/echo\/([^/].*)$/, (rest) => text(rest)],
  ['POST', /^\/digest$/, ({ body }) =>
    json({ bytes: body.length, sha256: crypto.createHash('sha256').update(body).digest('hex') })],
  ['GET', /^\/bytes\/(\d+)$/, (count) => bytes(Buffer.alloc(Number(count), 'x'))],
  ['GET', /^\/status\/(\d+)$/, (code) => [Number(code), null, null]],
  ['GET', /^\/bodiless\/(\d+)$/, (code) => text('five!', Number(code))],
  ['GET', /^\/dated$/, () => [200, ['date', 'Sun, 06 Nov 1994 08:49:37 GMT'], 'then']],
  ['GET', /^\/raise$/, () => { throw new Error('the handler of /raise raises') }],
  ['GET', /^\/hold\/([^/]+)$/, (gate) => {
    console.log(`holds at ${gate}`)
    hold(gate)
    return text(String(process.pid))
  }],
]

module.exports = (request) => {
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const decoded = decodeURIComponent(request.path)
  for (const [methods, pattern, answer] of ROUTES) {
    const found = pattern.exec(decoded)
    if (found && methods.split(' ').includes(method)) return found.length > 1 ? answer(found[1]) : answer(request)
  }
  return text('there is no such page', 404)
}
