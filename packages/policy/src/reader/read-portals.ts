import { parseTimeMs, subjectPattern, subjectRule, timePattern, timeRule } from '../policy-values.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** Each ends within days, when the last token that it refuses has ended by itself; a file may name as many. */
const portalsMax = 10_000

const portal = t.object('an entry of portals', {
  notBefore: t.required(
    'Every portal token of the subject that was made before this stood here is refused.',
    t.text(timeRule, (written) => (parseTimeMs(written) === undefined ? undefined : written), {
      pattern: timePattern.source,
    }),
  ),
})

/** The section `portals`. */
export const portalEntries = t.entries(portal.schema, {
  plural: 'portals',
  one: 'an entry of portals',
  max: portalsMax,
  ids: { rule: subjectRule, pattern: subjectPattern },
})

/** By subject, which tokens of its portal are refused. */
export function readPortals(reader: PolicyReader, at: SourcePosition): ReadonlyMap<string, string> {
  const portals = new Map<string, string>()
  for (const [subject, field] of portalEntries.read(reader, at)) {
    const found = portal.read(reader, field)
    if (found !== undefined) portals.set(subject, found.notBefore)
  }
  return portals
}
