const limitsBegin = Buffer.from('"limits":[')
const nameBegin = Buffer.from('{"name":"')
const sizeBegin = Buffer.from('","size":')
const usedBegin = Buffer.from(',"used":')
const nothingLeft = Buffer.from(',"remaining":0,')
const remainingBegin = Buffer.from(',"remaining":')
const resetBegin = Buffer.from(',"reset_ms":')
const [quote, brace, closingBrace, backslash] = [0x22, 0x7b, 0x7d, 0x5c]
const [comma, closingBracket, zero, nine] = [0x2c, 0x5d, 0x30, 0x39]

/** The lowest use from which a limit may alert, over all its versions. */
export interface LowestAlert {
  /** Infinity for no such threshold. */
  readonly percent: number
  readonly units: number
  /** Whether exceeding the limit blocks the subject. */
  readonly isBlocking: boolean
  /** Of a limit with a forecast: its shortest period, in milliseconds. */
  readonly periodMs?: number
}

/** Numbers of more digits are left to the parser. */
const digitsMax = 15

function startsAt(bytes: Buffer, at: number, text: Buffer): boolean {
  for (let index = 0; index < text.length; index += 1) if (bytes[at + index] !== text[index]) return false
  return true
}

/** Returns the first position that is no digit. */
function digitsEnd(bytes: Buffer, at: number): number {
  let end = at
  for (let byte = bytes[end] ?? 0; byte >= zero && byte <= nine; byte = bytes[end] ?? 0) end += 1
  return end
}

function numberAt(bytes: Buffer, from: number, end: number): number {
  let number = 0
  for (let at = from; at < end; at += 1) number = number * 10 + (bytes[at] ?? zero) - zero
  return number
}

/**
 * Returns the position behind a limit's brace, -1 if there is none. What it counted by is an object of texts, which may
 * have braces in them; it comes after the numbers.
 */
function limitEnd(bytes: Buffer, from: number, end: number): number {
  let depth = 1
  for (let at = from; at < end; at += 1) {
    const byte = bytes[at]
    if (byte === quote) {
      at = textEnd(bytes, at + 1, end)
    } else if (byte === brace) depth += 1
    else if (byte === closingBrace && --depth === 0) return at + 1
  }
  return -1
}

/** Returns the position of the quote that ends a text. */
function textEnd(bytes: Buffer, from: number, end: number): number {
  let at = from
  while (at < end && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}

/**
 * Whether more of the size may be used than of the period is over. `at` is behind `used`. A longer period is
 * further on than this believes: the parser looks closer.
 */
function mayEndEarly(bytes: Buffer, at: number, share: number, periodMs: number): boolean {
  if (!startsAt(bytes, at, remainingBegin)) return true
  const remainingEnd = digitsEnd(bytes, at + remainingBegin.length)
  if (!startsAt(bytes, remainingEnd, resetBegin)) return true
  const resetStart = remainingEnd + resetBegin.length
  return share > 1 - numberAt(bytes, resetStart, digitsEnd(bytes, resetStart)) / periodMs
}

/** A forecast is made when a tenth of a period is over and more of the quota is used. */
const forecastShare = 1 / 10

/**
 * Returns a test on the bytes of a decision record: may it have reached a threshold or a block? Nearly all records have
 * not, and need no parsing. It reads the form that the ingress writes; a record of another form may have, and is
 * parsed.
 */
export function createThresholdPrefilter(
  lowest: ReadonlyMap<string, LowestAlert>,
): (bytes: Buffer, valueStart: number, valueEnd: number) => boolean {
  return function mayCross(bytes, valueStart, valueEnd) {
    const found = bytes.indexOf(limitsBegin, valueStart)
    if (found < 0 || found >= valueEnd) return true
    let at = found + limitsBegin.length
    while (at < valueEnd) {
      const byte = bytes[at]
      if (byte === closingBracket) return false
      if (byte === comma) at += 1
      if (bytes[at] !== brace || !startsAt(bytes, at, nameBegin)) return true
      const nameStart = at + nameBegin.length
      const nameEnd = bytes.indexOf(quote, nameStart)
      if (nameEnd < 0 || !startsAt(bytes, nameEnd, sizeBegin)) return true
      const sizeStart = nameEnd + sizeBegin.length
      const sizeEnd = digitsEnd(bytes, sizeStart)
      if (!startsAt(bytes, sizeEnd, usedBegin)) return true
      const usedStart = sizeEnd + usedBegin.length
      const usedEnd = digitsEnd(bytes, usedStart)
      if (sizeEnd - sizeStart > digitsMax || usedEnd - usedStart > digitsMax) return true
      const alert = lowest.get(bytes.toString('latin1', nameStart, nameEnd))
      if (alert !== undefined) {
        if (alert.isBlocking && startsAt(bytes, usedEnd, nothingLeft)) return true
        const used = numberAt(bytes, usedStart, usedEnd)
        const size = numberAt(bytes, sizeStart, sizeEnd)
        if (used >= alert.units || used * 100 >= size * alert.percent) return true
        const { periodMs } = alert
        if (periodMs !== undefined && used < size && used / size >= forecastShare) {
          if (mayEndEarly(bytes, usedEnd, used / size, periodMs)) return true
        }
      }
      at = limitEnd(bytes, usedEnd, valueEnd)
      if (at < 0) return true
    }
    return true
  }
}
