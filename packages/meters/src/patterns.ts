import { laxName } from '@weir/core/http/lax-name.ts'

/** Where a reader is on the ways of all patterns together: what may come next, and what ends here. */
export interface PatternState {
  /** The patterns that end here. */
  readonly ends: readonly number[]
  /** Of an array: where each item leads, unless its position has a state of its own. */
  readonly eachItem: PatternState | undefined
  readonly itemAt: ReadonlyMap<number, PatternState> | undefined
  /** Of an object, by the name as the laxest reader has it. */
  readonly members: ReadonlyMap<string, PatternMember>
  /** By the number of bytes, the names as patterns write them; undefined where another number may spell them too. */
  readonly names: readonly (readonly PatternName[] | undefined)[] | undefined
}

/** A name of a member as patterns write it. */
export interface PatternName {
  readonly bytes: Buffer
  readonly member: PatternMember
  readonly state: PatternState
}

/** A member that patterns name. */
export interface PatternMember {
  /** By the name as patterns write it. */
  readonly states: ReadonlyMap<string, PatternState>
  /** All patterns that go on from it: if it is there twice, none of them has one value. */
  readonly below: readonly number[]
}

/** Patterns, prepared once for any number of readers. */
export interface Patterns {
  readonly root: PatternState
  readonly count: number
}

/** Enough for what any supplier's usage is made of, and few enough to be prepared at once. */
const patternsMax = 64

/** The members and indexes that a pointer (RFC 6901) names, from the outside in. */
export const stepsOf = (pointer: string): readonly string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))

/** A pattern, and how many of its steps are behind the reader. */
interface Way {
  readonly pattern: number
  readonly steps: readonly string[]
}

const next = ({ pattern, steps }: Way): Way => ({ pattern, steps: steps.slice(1) })

function stateOf(ways: readonly Way[], isAny: (step: string | undefined) => boolean): PatternState {
  const ends = ways.filter(({ steps }) => steps.length === 0).map(({ pattern }) => pattern)
  const open = ways.filter(({ steps }) => steps.length > 0)
  const each = open.filter(({ steps: [step] }) => isAny(step))
  const plain = open.filter(({ steps: [step] }) => !isAny(step))
  const named = Map.groupBy(plain, ({ steps: [step = ''] }) => step)
  const names: PatternName[][] = []
  const members = new Map<string, PatternMember>()
  for (const [lax, spellings] of Map.groupBy(named, ([name]) => laxName(name))) {
    const member = {
      states: new Map(spellings.map(([name, all]) => [name, stateOf(all.map(next), isAny)])),
      below: spellings.flatMap(([, all]) => all.map(({ pattern }) => pattern)),
    }
    members.set(lax, member)
    for (const [name, state] of member.states) {
      const bytes = Buffer.from(name)
      names[bytes.length] = [...(names[bytes.length] ?? []), { bytes, member, state }]
    }
  }
  const positions = [...named].filter(([name]) => /^(?:0|[1-9]\d*)$/.test(name))
  const items = positions.map(([at, all]) => [Number(at), stateOf([...all, ...each].map(next), isAny)] as const)
  return {
    ends,
    eachItem: each.length === 0 ? undefined : stateOf(each.map(next), isAny),
    itemAt: items.length === 0 ? undefined : new Map(items),
    members,
    names: [...named.keys()].every((name) => /^[\x20-\x7e]*$/.test(name)) ? names : undefined,
  }
}

const isStar = (step: string | undefined): boolean => step === '*'

/**
 * Prepares JSON pointers (RFC 6901) in which a step `*`, or what `isAny` says, is any item of an array. No two may be
 * equal.
 */
export function preparePatterns(pointers: readonly string[], isAny = isStar): Patterns {
  if (pointers.length > patternsMax) throw new RangeError(`${pointers.length} patterns, at most ${patternsMax}`)
  return {
    root: stateOf(
      pointers.map((pointer, pattern) => ({ pattern, steps: stepsOf(pointer) })),
      isAny,
    ),
    count: pointers.length,
  }
}
