import { laxName } from '@weir/core/http/lax-name.ts'

/** A step of a pattern, with those that may follow it. */
export interface PatternNode {
  /** By the name as the laxest reader has it. */
  readonly members: Map<string, PatternMember>
  /** What `*` leads to: any item of an array. */
  anyItem: PatternNode | undefined
  /** The pattern that ends here; -1 for none. */
  pattern: number
}

/** A member that patterns name. */
export interface PatternMember {
  /** As patterns write it. */
  readonly name: string
  readonly node: PatternNode
  /** All patterns that go on from it, itself included: if it is there twice, none of them has one value. */
  readonly below: number[]
}

/** Patterns, prepared once for any number of readers. */
export interface Patterns {
  readonly root: PatternNode
  readonly count: number
}

/** Enough for what any supplier's usage is made of, and few enough for a step's names to be compared one by one. */
const patternsMax = 64

const newNode = (): PatternNode => ({ members: new Map(), anyItem: undefined, pattern: -1 })

/** The members and indexes that a pointer (RFC 6901) names, from the outside in. */
const stepsOf = (pointer: string): readonly string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))

/** Prepares JSON pointers (RFC 6901) in which a step `*` is any item of an array. No two may be equal. */
export function preparePatterns(pointers: readonly string[]): Patterns {
  if (pointers.length > patternsMax) throw new RangeError(`${pointers.length} patterns, at most ${patternsMax}`)
  const root = newNode()
  for (const [pattern, pointer] of pointers.entries()) {
    let node = root
    for (const step of stepsOf(pointer)) {
      if (step === '*') {
        node.anyItem ??= newNode()
        node = node.anyItem
      } else {
        const lax = laxName(step)
        const member = node.members.get(lax) ?? { name: step, node: newNode(), below: [] }
        member.below.push(pattern)
        node.members.set(lax, member)
        node = member.node
      }
    }
    node.pattern = pattern
  }
  return { root, count: pointers.length }
}
