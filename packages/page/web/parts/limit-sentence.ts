import type { Impact } from '@weir/api/policy.ts'
import { count, counted } from '@weir/core/format.ts'

/** What another size of a limit does. */
type LimitImpact = Pick<Impact['limits'][number], 'before' | 'after' | 'subjects' | 'routes'>

const names = (all: readonly string[]) =>
  all.length < 3 ? all.join(' and ') : `${all.slice(0, 2).join(', ')} and ${counted(all.length - 2, 'other')}`

/** Who would be refused, how often and where, in one sentence. */
export function limitSentence({ before, after, subjects, routes }: LimitImpact, size: number): string {
  const more = after - before
  if (more === 0) return `At ${count(size)}, nobody would be refused more or less often.`
  const touched = subjects.filter((one) => (more > 0 ? one.after > one.before : one.after < one.before))
  const [route] = routes
  const where = route === undefined ? '' : `, mostly on ${route.route === '*' ? 'no matching route' : route.route}`
  const who = names(touched.map(({ subject }) => subject))
  const times = more > 0 ? counted(more, 'more time', 'more times') : counted(-more, 'fewer time', 'fewer times')
  return `At ${count(size)}, ${who} would be refused ${times} in 7 days${where}.`
}
