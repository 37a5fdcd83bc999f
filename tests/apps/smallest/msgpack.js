// MessagePack, as far as the protocol has it. Bytes are Buffers, maps are Maps; integers beyond 2^53 are BigInts.

'use strict'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const DEPTH_MAX = 200

function decode(bytes) {
  let at = 0
  const taken = (size) => {
    if (at + size > bytes.length) throw new Error('the value breaks off')
    at += size
    return bytes.subarray(at - size, at)
  }
  const number = (size, signed) => {
    const part = taken(size)
    if (size < 8) return signed ? part.readIntBE(0, size) : part.readUIntBE(0, size)
    const big = signed ? part.readBigInt64BE(0) : part.readBigUInt64BE(0)
    return Number.isSafeInteger(Number(big)) ? Number(big) : big
  }
  const text = (size) => utf8.decode(taken(size))
  const each = (count, one) => {
    if (count > bytes.length - at) throw new Error('the value breaks off')
    return Array.from({ length: count }, one)
  }
  const array = (count, depth) => each(count, () => value(depth + 1))
  const map = (count, depth) => {
    const pairs = each(count, () => [value(depth + 1), value(depth + 1)])
    return new Map(pairs)
  }
  const extension = (size) => taken(1 + size)
  function value(depth) {
    if (depth > DEPTH_MAX) throw new Error('the value is nested too deep')
    const tag = taken(1)[0]
    if (tag < 0x80) return tag
    if (tag < 0x90) return map(tag & 0x0f, depth)
    if (tag < 0xa0) return array(tag & 0x0f, depth)
    if (tag < 0xc0) return text(tag & 0x1f)
    if (tag >= 0xe0) return tag - 256
    const size = 1 << (tag & 3)
    switch (tag) {
      case 0xc0: return null
      case 0xc2: return false
      case 0xc3: return true
      case 0xc4: return taken(number(1))
      case 0xc5: return taken(number(2))
      case 0xc6: return taken(number(4))
      case 0xc7: return extension(number(1))
      case 0xc8: return extension(number(2))
      case 0xc9: return extension(number(4))
      case 0xca: return taken(4).readFloatBE(0)
      case 0xcb: return taken(8).readDoubleBE(0)
      case 0xcc: case 0xcd: case 0xce: case 0xcf: return number(size)
      case 0xd0: case 0xd1: case 0xd2: case 0xd3: return number(size, true)
      case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8: return extension(1 << (tag - 0xd4))
      case 0xd9: return text(number(1))
      case 0xda: return text(number(2))
      case 0xdb: return text(number(4))
      case 0xdc: return array(number(2), depth)
      case 0xdd: return array(number(4), depth)
      case 0xde: return map(number(2), depth)
      case 0xdf: return map(number(4), depth)
      default: throw new Error('no value begins like this')
    }
  }
  const decoded = value(0)
  if (at !== bytes.length) throw new Error('there are bytes after the value')
  return decoded
}

// The shortest form of everything.
function encode(value) {
  if (value === null) return Buffer.from([0xc0])
  if (typeof value === 'boolean') return Buffer.from([value ? 0xc3 : 0xc2])
  if (typeof value === 'number') return unsigned(value)
  if (typeof value === 'string') {
    const bytes = Buffer.from(value)
    return Buffer.concat([bytes.length < 32 ? Buffer.from([0xa0 | bytes.length]) : sized(0xd9, bytes.length), bytes])
  }
  if (Buffer.isBuffer(value)) return Buffer.concat([sized(0xc4, value.length), value])
  if (value instanceof Map) return counted(0x80, 0xde, value.size, [...value].flat())
  return counted(0x90, 0xdc, value.length, value)
}

function unsigned(value) {
  return value < 0x80 ? Buffer.from([value]) : sized(0xcc, value)
}

// A tag for one byte, the next for two, and so on.
function sized(tag, size) {
  const width = size < 0x100 ? 1 : size < 0x10000 ? 2 : size < 0x100000000 ? 4 : 8
  const bytes = Buffer.alloc(1 + width)
  bytes[0] = tag + Math.log2(width)
  if (width === 8) bytes.writeBigUInt64BE(BigInt(size), 1)
  else bytes.writeUIntBE(size, 1, width)
  return bytes
}

function counted(short, long, count, elements) {
  const head = count < 16 ? Buffer.from([short | count]) : Buffer.from([long, count >> 8, count & 0xff])
  return Buffer.concat([head, ...elements.map(encode)])
}

module.exports = { decode, encode }
