// The process: it reads from 3, runs one request at a time, and writes to 4. An application is a module that exports a
// function from a request (method, path, query, headers, body) to [status, headers, body].

'use strict'

const fs = require('fs')
const path = require('path')
const { Session } = require('./session')

// An empty handler, which programs that are started do not inherit. It never runs: what is here waits in read and write.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1']) process.on(signal, () => {})

const session = new Session(process.pid)
const buffer = Buffer.alloc(65536)
let application

function write(bytes) {
  for (let at = 0; at < bytes.length;) at += fs.writeSync(4, bytes, at)
}

function load(target) {
  try {
    application = require(path.resolve(target))
    write(session.ready())
  } catch (error) {
    write(session.failed(error.stack))
    process.exit(1)
  }
}

function run(stream, request) {
  let answer
  try {
    answer = session.respond(stream, ...application(request))
  } catch (error) {
    answer = session.error(stream, 'application', String(error.stack))
  }
  write(answer)
}

for (;;) {
  const size = fs.readSync(3, buffer)
  if (size === 0) process.exit(0) // the core has gone
  for (const event of session.receive(buffer.subarray(0, size))) {
    if (event.reply) write(event.reply)
    if (event.greeted) load(event.greeted.get('target'))
    if (event.opened) run(event.opened, event.request)
    if (event.ended) process.exit(0)
  }
}
