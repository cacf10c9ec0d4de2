import { parseTimeMs, timePattern, timeRule } from '../policy-values.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** Each ends within days, when the last token that it refuses has ended by itself; a file may name as many. */
const portalsMax = 10_000

const portal = t.object('an entry of portals', {
  notBefore: t.required(
    'Portal tokens of the subject created before this time are rejected.',
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
  ids: t.subjectIds,
})

/** By subject, which tokens of its portal are refused. */
export const readPortals = (reader: PolicyReader, at: SourcePosition) =>
  portalEntries.each(reader, at, (_, field) => portal.read(reader, field)?.notBefore)
