import { definedFields } from '@weir/core/defined-fields.ts'
import type { Silence } from '../policy.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import { alertChoice } from './read-endpoints.ts'
import * as t from './value-types.ts'

/** Each alert is compared with all of them; those that ended are deleted days later. */
const silencesMax = 1_000
/** A silence that is forgotten hides a month of alerts at most. */
export const silenceLongestMs = 30 * 24 * 3_600_000

const silence = t.object(
  'a silence',
  {
    ...alertChoice,
    from: t.required('Start: alerts raised earlier are sent.', t.time),
    until: t.required('End of the silence, exclusive; at most 30 days after the start.', t.time),
    by: t.required('Creator: the name of a token.', t.name),
    reason: t.optional('Reason.', t.reason),
  },
  { anyOf: Object.keys(alertChoice).map((key) => t.has(key)) },
)

/** The section `silences`. */
export const silenceEntries = t.entries(silence.schema, { plural: 'silences', one: 'a silence', max: silencesMax })

/** Which alerts are sent to no endpoint, by name of the silence. */
export const readSilences = (reader: PolicyReader, at: SourcePosition) =>
  silenceEntries.each(reader, at, (name, field): Silence | undefined => {
    const found = silence.find(reader, field)
    if (found === undefined) return undefined
    const { types, limits, subjects, from, until } = found.values
    if (types === undefined && limits === undefined && subjects === undefined) {
      reader.problem(field, 'needs `subjects`, `limits` or `types`: otherwise it would silence every alert')
    }
    const untilAt = found.fields.get('until')
    if (from === undefined || until === undefined || untilAt === undefined) return undefined
    if (until <= from) reader.problem(untilAt, 'must be after `from`')
    if (until - from > silenceLongestMs) reader.problem(untilAt, 'must be at most 30 days after `from`')
    return { name, only: definedFields({ types, limits, subjects }), fromMs: from, untilMs: until }
  })
