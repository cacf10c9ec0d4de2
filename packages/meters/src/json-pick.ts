import { laxName } from '@weir/core/http/lax-name.ts'
import type { PatternMember, PatternNode, Patterns } from './patterns.ts'

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

/** A container on the way of some pattern. */
interface Frame {
  readonly isList: boolean
  /** The patterns' steps that led here. */
  readonly nodes: readonly PatternNode[]
  /** Those that the current member or item is at. */
  current: readonly PatternNode[]
  items: number
  seen: Set<PatternMember> | undefined
}

const nowhere: readonly PatternNode[] = []
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
  readonly #root: PatternNode
  readonly #found: (pattern: number, fact: Fact) => void
  /** By depth: 1 for a list. */
  readonly #lists = new Uint8Array(depthMax + 1)
  readonly #frames: Frame[] = []
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
    this.#frames.length = 0
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
      if (isList && frame !== undefined) this.#nextItem(frame)
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
    return this.#frames.length === this.#depth ? this.#frames[this.#depth - 1] : undefined
  }

  /** The patterns' steps that the value is at. */
  #nodes(): readonly PatternNode[] {
    if (this.#depth === 0) return [this.#root]
    return this.#frame()?.current ?? nowhere
  }

  #tell(nodes: readonly PatternNode[], fact: Fact): void {
    for (const { pattern } of nodes) if (pattern >= 0) this.#found(pattern, fact)
  }

  #open(list: number): void {
    const nodes = this.#nodes()
    if (this.#depth === depthMax) {
      this.#mode = modes.wrong
      return
    }
    this.#depth += 1
    this.#lists[this.#depth] = list
    this.#mode = list === 1 ? modes.firstItem : modes.firstName
    if (nodes.length === 0) return
    const frame: Frame = { isList: list === 1, nodes, current: nowhere, items: 0, seen: undefined }
    this.#frames.push(frame)
    if (frame.isList) this.#nextItem(frame)
    else this.#tell(nodes, { kind: 'object', value: undefined, size: 0 })
  }

  #close(list: number): void {
    if (this.#depth === 0 || this.#lists[this.#depth] !== list) {
      this.#mode = modes.wrong
      return
    }
    const frame = this.#frame()
    if (frame !== undefined) {
      this.#frames.pop()
      const isEmpty = this.#mode === modes.firstItem
      if (frame.isList) this.#tell(frame.nodes, { kind: 'list', value: undefined, size: isEmpty ? 0 : frame.items })
    }
    this.#depth -= 1
    this.#ended()
  }

  #ended(): void {
    this.#mode = this.#depth === 0 ? modes.done : modes.after
  }

  #nextItem(frame: Frame): void {
    const at = `${frame.items}`
    frame.items += 1
    frame.current = frame.nodes.flatMap(({ anyItem, members }) => {
      const named = members.get(at)?.node
      return [anyItem, named].filter((node) => node !== undefined)
    })
  }

  #nextMember(frame: Frame, name: string): void {
    const lax = laxName(name)
    const current: PatternNode[] = []
    for (const { members } of frame.nodes) {
      const member = members.get(lax)
      if (member === undefined) continue
      frame.seen ??= new Set()
      if (frame.seen.has(member)) for (const pattern of member.below) this.isAmbiguous[pattern] = true
      frame.seen.add(member)
      if (member.name === name) current.push(member.node)
    }
    frame.current = current
  }

  #beginText(isName: boolean): void {
    const isAsked = isName ? this.#frame() !== undefined : this.#nodes().some(({ pattern }) => pattern >= 0)
    this.#mode = modes.text
    this.#isName = isName
    this.#kept = isAsked ? '' : undefined
    this.#size = 0
    this.#isEscape = false
  }

  /** Returns where the text goes on, or ends. */
  #readText(chunk: Buffer, from: number): number {
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
      if (frame !== undefined) this.#nextMember(frame, this.#size > textBytesMax ? `${value}\0` : value)
      this.#mode = modes.colon
    } else {
      if (kept !== undefined) this.#tell(this.#nodes(), { kind: 'text', value, size: this.#size })
      this.#ended()
    }
  }

  #beginPlain(mode: number): void {
    this.#mode = mode
    this.#kept = ''
  }

  /** A number or a word. Returns where it ends, or goes on. */
  #readPlain(chunk: Buffer, from: number): number {
    const belongs = this.#mode === modes.number ? isOfNumber : isLetter
    let at = from
    while (at < chunk.length && belongs(chunk[at] ?? 0)) at += 1
    const kept = this.#kept ?? ''
    // One that is longer is no number that anybody takes.
    if (kept.length <= numberBytesMax)
      this.#kept = kept + chunk.toString('latin1', from, Math.min(at, from + numberBytesMax + 1))
    if (at < chunk.length) this.#endPlain()
    return at
  }

  #endPlain(): void {
    const text = this.#kept ?? ''
    this.#kept = undefined
    const nodes = this.#nodes()
    const isAsked = nodes.some(({ pattern }) => pattern >= 0)
    if (this.#mode === modes.word) {
      const fact = words.get(text)
      if (fact === undefined) {
        this.#mode = modes.wrong
        return
      }
      if (isAsked) this.#tell(nodes, fact)
    } else if (isAsked) {
      const value = text.length <= numberBytesMax && numberText.test(text) ? Number(text) : Number.NaN
      this.#tell(nodes, { kind: 'number', value, size: 0 })
    }
    this.#ended()
  }
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
