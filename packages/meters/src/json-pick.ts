import { laxName } from '@weir/core/http/lax-name.ts'
import type { PatternMember, PatternState, Patterns } from './patterns.ts'

/** What stands where a pattern points. `size`: bytes of a text as written, items of a list; 0 of all else. */
export type Fact =
  | { readonly kind: 'number'; readonly value: number; readonly size: number }
  /** Of one with more than `textBytesMax` bytes only what it begins with, up to the first escape. */
  | { readonly kind: 'text'; readonly value: string; readonly size: number }
  | { readonly kind: 'boolean'; readonly value: boolean; readonly size: number }
  | { readonly kind: 'null' | 'list' | 'object'; readonly value: undefined; readonly size: number }

/** Containers within each other; also of other parsers' defaults the order. */
const depthMax = 128
/** What is longer is no name of a member, a model or a kind of content. */
const textBytesMax = 1_024
/** Digits of a number that anybody would charge. */
const numberBytesMax = 32

const quote = 0x22
const backslash = 0x5c

/** What may come next. */
const modes = {
  value: 0,
  firstItem: 1,
  firstName: 2,
  name: 3,
  colon: 4,
  after: 5,
  text: 6,
  number: 7,
  word: 8,
  done: 9,
  wrong: 10,
} as const

/** A container on the way of some pattern; one for each depth, used again and again. */
interface Frame {
  state: PatternState
  isList: boolean
  /** Where the current member or item is; undefined off every way. */
  current: PatternState | undefined
  items: number
  readonly seen: Set<PatternMember>
}

const numberText = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const words = new Map<string, Fact>([
  ['true', { kind: 'boolean', value: true, size: 0 }],
  ['false', { kind: 'boolean', value: false, size: 0 }],
  ['null', { kind: 'null', value: undefined, size: 0 }],
])

const isSpace = (byte: number) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39
/** What a number may consist of. */
const isOfNumber = (byte: number) =>
  isDigit(byte) || byte === 0x2e || byte === 0x2d || byte === 0x2b || byte === 0x65 || byte === 0x45
const isLetter = (byte: number) => byte >= 0x61 && byte <= 0x7a

/**
 * Finds the values that patterns point to in one JSON text (RFC 8259), as it comes: nothing of it is kept but where it
 * stands, and the name or the value that is being read. Texts are skipped by the engine's own search. What no pattern
 * asks for is read for its structure alone: letters and digits in it may be wrong.
 */
export class JsonPick {
  /** By pattern: a member on its way is there twice, or in two spellings, and readers differ in which they take. */
  readonly isAmbiguous: boolean[]
  readonly #root: PatternState
  readonly #found: (pattern: number, fact: Fact) => void
  /** By depth: 1 for a list. */
  readonly #lists = new Uint8Array(depthMax + 1)
  /** By depth, as far as some pattern's way leads. */
  readonly #frames: Frame[] = []
  #framed = 0
  #depth = 0
  #mode: number = modes.value
  /** Where the text that is read is a member's name, or asked for, its bytes so far, as Latin-1. */
  #kept: string | undefined
  #isName = false
  #size = 0
  /** Whether the last byte so far escapes the next. */
  #isEscape = false

  constructor(patterns: Patterns, found: (pattern: number, fact: Fact) => void) {
    this.#root = patterns.root
    this.#found = found
    this.isAmbiguous = Array.from({ length: patterns.count }, () => false)
  }

  /** Begins with the next text. */
  reset(): void {
    this.#framed = 0
    this.#depth = 0
    this.#mode = modes.value
    this.#kept = undefined
    this.isAmbiguous.fill(false)
  }

  /** Reads on, and returns false once it is no JSON. */
  write(chunk: Buffer): boolean {
    const { length } = chunk
    let at = 0
    while (at < length && this.#mode !== modes.wrong) {
      if (this.#mode === modes.text) at = this.#readText(chunk, at)
      else if (this.#mode >= modes.number && this.#mode <= modes.word) at = this.#readPlain(chunk, at)
      else {
        const byte = chunk[at] ?? 0
        if (!isSpace(byte)) this.#take(byte)
        // What begins with this byte is read with it.
        if (this.#mode !== modes.number && this.#mode !== modes.word) at += 1
      }
    }
    return this.#mode !== modes.wrong
  }

  /** Whether it was one JSON value, whole. */
  end(): boolean {
    if (this.#depth === 0 && (this.#mode === modes.number || this.#mode === modes.word)) this.#endPlain()
    return this.#mode === modes.done
  }

  /** One byte of the structure. */
  #take(byte: number): void {
    const mode = this.#mode
    if (mode === modes.after) this.#takeAfter(byte)
    else if (mode === modes.colon) this.#mode = byte === 0x3a ? modes.value : modes.wrong
    else if (mode === modes.name || mode === modes.firstName) {
      if (byte === quote) this.#beginText(true)
      else if (byte === 0x7d && mode === modes.firstName) this.#close(0)
      else this.#mode = modes.wrong
    } else if (mode === modes.done) this.#mode = modes.wrong
    else if (byte === 0x5d && mode === modes.firstItem) this.#close(1)
    else this.#beginValue(byte)
  }

  #takeAfter(byte: number): void {
    if (byte === 0x2c) {
      const isList = this.#lists[this.#depth] === 1
      const frame = this.#frame()
      if (isList && frame !== undefined) nextItem(frame)
      this.#mode = isList ? modes.value : modes.name
    } else if (byte === 0x7d) this.#close(0)
    else if (byte === 0x5d) this.#close(1)
    else this.#mode = modes.wrong
  }

  #beginValue(byte: number): void {
    if (byte === quote) this.#beginText(false)
    else if (byte === 0x7b) this.#open(0)
    else if (byte === 0x5b) this.#open(1)
    else if (isDigit(byte) || byte === 0x2d) this.#beginPlain(modes.number)
    else if (isLetter(byte)) this.#beginPlain(modes.word)
    else this.#mode = modes.wrong
  }

  /** The container that is read, if some pattern's way leads into it. */
  #frame(): Frame | undefined {
    return this.#framed === this.#depth ? this.#frames[this.#depth - 1] : undefined
  }

  /** Where the value is on the patterns' ways. */
  #state(): PatternState | undefined {
    return this.#depth === 0 ? this.#root : this.#frame()?.current
  }

  #tell(state: PatternState | undefined, fact: Fact): void {
    if (state !== undefined) for (const pattern of state.ends) this.#found(pattern, fact)
  }

  #open(list: number): void {
    const state = this.#state()
    if (this.#depth === depthMax) {
      this.#mode = modes.wrong
      return
    }
    this.#depth += 1
    this.#lists[this.#depth] = list
    this.#mode = list === 1 ? modes.firstItem : modes.firstName
    if (state === undefined) return
    const known = this.#frames[this.#framed]
    const frame = known ?? { state, isList: false, current: undefined, items: 0, seen: new Set() }
    if (known === undefined) this.#frames.push(frame)
    this.#framed += 1
    frame.state = state
    frame.isList = list === 1
    frame.current = undefined
    frame.items = 0
    frame.seen.clear()
    if (frame.isList) nextItem(frame)
    else this.#tell(state, { kind: 'object', value: undefined, size: 0 })
  }

  #close(list: number): void {
    if (this.#depth === 0 || this.#lists[this.#depth] !== list) {
      this.#mode = modes.wrong
      return
    }
    const frame = this.#frame()
    if (frame !== undefined) {
      this.#framed -= 1
      const size = this.#mode === modes.firstItem ? 0 : frame.items
      if (frame.isList) this.#tell(frame.state, { kind: 'list', value: undefined, size })
    }
    this.#depth -= 1
    this.#ended()
  }

  #ended(): void {
    this.#mode = this.#depth === 0 ? modes.done : modes.after
  }

  #nextMember(frame: Frame, member: PatternMember | undefined, state: PatternState | undefined): void {
    frame.current = state
    if (member === undefined) return
    // Some readers take another spelling for the name.
    if (frame.seen.has(member) || frame.current === undefined)
      for (const pattern of member.below) this.isAmbiguous[pattern] = true
    frame.seen.add(member)
  }

  #beginText(isName: boolean): void {
    const isAsked = isName ? this.#frame() !== undefined : isAskedAt(this.#state())
    this.#mode = modes.text
    this.#isName = isName
    this.#kept = isAsked ? '' : undefined
    this.#size = 0
    this.#isEscape = false
  }

  /** Returns where the text goes on, or ends. */
  #readText(chunk: Buffer, from: number): number {
    const near = this.#size === 0 && !this.#isEscape ? endOfShort(chunk, from) : -1
    if (near >= 0) return this.#readShort(chunk, from, near)
    let at = from
    if (this.#isEscape) {
      this.#isEscape = false
      at += 1
    }
    for (;;) {
      const found = chunk.indexOf(quote, at)
      const end = found < 0 ? chunk.length : found
      let escapes = 0
      while (end - escapes > at && chunk[end - escapes - 1] === backslash) escapes += 1
      const isEscaped = escapes % 2 === 1
      if (found >= 0 && isEscaped) {
        at = found + 1
        continue
      }
      this.#keep(chunk, from, end)
      this.#isEscape = isEscaped
      if (found < 0) return end
      this.#endText()
      return end + 1
    }
  }

  /** One that is whole, and as it is written: most names and many values. */
  #readShort(chunk: Buffer, from: number, end: number): number {
    const frame = this.#isName ? this.#frame() : undefined
    const name = frame && nameIn(frame.state, chunk, from, end)
    if (name === 'another-spelling') {
      this.#keep(chunk, from, end)
      this.#endText()
      return end + 1
    }
    const isAsked = this.#kept !== undefined
    this.#kept = undefined
    if (this.#isName) {
      if (frame !== undefined) this.#nextMember(frame, name?.member, name?.state)
      this.#mode = modes.colon
    } else {
      const size = end - from
      if (isAsked) this.#tell(this.#state(), { kind: 'text', value: chunk.toString('latin1', from, end), size })
      this.#ended()
    }
    return end + 1
  }

  #keep(chunk: Buffer, from: number, end: number): void {
    this.#size += end - from
    if (this.#kept === undefined) return
    const left = textBytesMax - this.#kept.length
    if (left > 0) this.#kept += chunk.toString('latin1', from, Math.min(end, from + left))
  }

  #endText(): void {
    const kept = this.#kept
    this.#kept = undefined
    const value = kept === undefined ? '' : this.#size > textBytesMax ? beginOf(kept) : textOf(kept)
    if (value === undefined) {
      this.#mode = modes.wrong
    } else if (this.#isName) {
      const frame = this.#frame()
      // Some end a name at NUL: of a long one, too, only what it begins with may be what they read.
      const name = this.#size > textBytesMax ? `${value}\0` : value
      const member = frame?.state.members.get(laxName(name))
      if (frame !== undefined) this.#nextMember(frame, member, member?.states.get(name))
      this.#mode = modes.colon
    } else {
      if (kept !== undefined) this.#tell(this.#state(), { kind: 'text', value, size: this.#size })
      this.#ended()
    }
  }

  #beginPlain(mode: number): void {
    this.#mode = mode
    this.#kept = mode === modes.word || isAskedAt(this.#state()) ? '' : undefined
  }

  /** A number or a word. Returns where it ends, or goes on. */
  #readPlain(chunk: Buffer, from: number): number {
    const belongs = this.#mode === modes.number ? isOfNumber : isLetter
    let at = from
    while (at < chunk.length && belongs(chunk[at] ?? 0)) at += 1
    // One that is longer is no number that anybody takes, and no word.
    if (this.#kept !== undefined && this.#kept.length <= numberBytesMax)
      this.#kept += chunk.toString('latin1', from, Math.min(at, from + numberBytesMax + 1))
    if (at < chunk.length) this.#endPlain()
    return at
  }

  #endPlain(): void {
    const text = this.#kept
    this.#kept = undefined
    if (this.#mode === modes.word) {
      const fact = words.get(text ?? '')
      if (fact === undefined) {
        this.#mode = modes.wrong
        return
      }
      this.#tell(this.#state(), fact)
    } else if (text !== undefined) {
      const value = text.length <= numberBytesMax && numberText.test(text) ? Number(text) : Number.NaN
      this.#tell(this.#state(), { kind: 'number', value, size: 0 })
    }
    this.#ended()
  }
}

const isAskedAt = (state: PatternState | undefined): boolean => state !== undefined && state.ends.length > 0

function nextItem(frame: Frame): void {
  const { itemAt, eachItem } = frame.state
  frame.current = itemAt?.get(frame.items) ?? eachItem
  frame.items += 1
}

/** Shorter texts are found faster one by one than by the engine's search. */
const shortMax = 48

/** Where a short text of plain letters ends; -1 if it is none, or is not whole. */
function endOfShort(chunk: Buffer, from: number): number {
  const most = Math.min(chunk.length, from + shortMax)
  for (let at = from; at < most; at += 1) {
    const byte = chunk[at] ?? 0
    if (byte === quote) return at
    if (byte === backslash || byte >= 0x7f || byte < 0x20) return -1
  }
  return -1
}

/** Which member plain letters name; undefined for none that is asked for. They differ from a name in capitals alone. */
function nameIn({ names }: PatternState, chunk: Buffer, from: number, end: number) {
  if (names === undefined) return 'another-spelling'
  let isLike = false
  for (const name of names[end - from] ?? []) {
    const { bytes } = name
    let isSame = true
    let at = 0
    for (; at < bytes.length; at += 1) {
      const byte = chunk[from + at] ?? 0
      const wanted = bytes[at] ?? 0
      if (byte === wanted) continue
      if ((byte | 0x20) !== (wanted | 0x20) || !isLetter(byte | 0x20)) break
      isSame = false
    }
    if (at === bytes.length && isSame) return name
    isLike ||= at === bytes.length
  }
  return isLike ? 'another-spelling' : undefined
}

/** What a text begins with, up to the first byte that means another one. */
const beginOf = (latin1: string): string => /^[\x20-\x5b\x5d-\x7e]*/.exec(latin1)?.[0] ?? ''

/** A text of JSON, which came as bytes; undefined for one that is wrong. */
function textOf(latin1: string): string | undefined {
  if (beginOf(latin1) === latin1) return latin1
  try {
    const value: unknown = JSON.parse(`"${Buffer.from(latin1, 'latin1').toString('utf8')}"`)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
