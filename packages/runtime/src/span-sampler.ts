/** OpenTelemetry's names for what decides which requests are traced. */
export const samplers = [
  ...(['always_on', 'always_off', 'traceidratio'] as const),
  ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
] as const

/** What the caller in front has decided for a request; undefined where nobody has whose word counts. */
export type ParentDecision = 'sampled' | 'unsampled' | undefined

/** Decides whether a request is traced. Makes no object. */
export type Sampler = (parent: ParentDecision) => boolean

/** Traces of a process in a second, at most. */
const tracesPerSecondMax = 100
/** Those of them that a proxy in front wants, which may sample everything: the others keep their share. */
const ofParentsMax = 50

/** `ratio` is from 0 to 1. `random` gives numbers from 0 to below 1, `nowMs` milliseconds; both are given by tests. */
export function createSampler(
  name: (typeof samplers)[number],
  ratio: number,
  { random = Math.random, nowMs = performance.now.bind(performance) } = {},
): Sampler {
  const goesByParent = name.startsWith('parentbased_')
  const share = name.endsWith('always_on') ? 1 : name.endsWith('always_off') ? 0 : ratio
  let second = 0
  let traced = 0
  let ofParents = 0
  return (parent) => {
    const isWanted = goesByParent && parent !== undefined ? parent === 'sampled' : random() < share
    if (!isWanted) return false
    const now = Math.floor(nowMs() / 1_000)
    if (now !== second) {
      second = now
      traced = 0
      ofParents = 0
    }
    const isParents = goesByParent && parent !== undefined
    if (traced >= tracesPerSecondMax || (isParents && ofParents >= ofParentsMax)) return false
    traced += 1
    if (isParents) ofParents += 1
    return true
  }
}
