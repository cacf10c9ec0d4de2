import type { Silence } from '../policy.ts'
import { namePattern, nameRule, parseTimeMs, timePattern, timeRule } from '../policy-values.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import { alertChoice } from './read-endpoints.ts'
import * as t from './value-types.ts'

/** Each alert is compared with all of them; those that ended are deleted days later. */
const silencesMax = 1_000
/** A silence that is forgotten hides a month of alerts at most. */
export const silenceLongestMs = 30 * 24 * 3_600_000
const reasonLengthMax = 200

const time = t.text(timeRule, parseTimeMs, { pattern: timePattern.source })

const silence = t.object(
  'a silence',
  {
    ...alertChoice,
    from: t.required('The first instant: alerts that were raised before it are sent.', time),
    until: t.required('The first instant after it, at most 30 days later.', time),
    by: t.required('Who made it: the name of a token.', t.matching(nameRule, namePattern)),
    reason: t.optional(
      'Why.',
      t.text(
        `a text of at most ${reasonLengthMax} characters`,
        (written) => (written.length > reasonLengthMax ? undefined : written),
        { maxLength: reasonLengthMax },
      ),
    ),
  },
  { anyOf: Object.keys(alertChoice).map((key) => t.has(key)) },
)

/** The section `silences`. */
export const silenceEntries = t.entries(silence.schema, { plural: 'silences', one: 'a silence', max: silencesMax })

/** Which alerts are sent to no endpoint, by name of the silence. */
export function readSilences(reader: PolicyReader, at: SourcePosition): ReadonlyMap<string, Silence> {
  const silences = new Map<string, Silence>()
  for (const [name, field] of silenceEntries.read(reader, at)) {
    const found = silence.find(reader, field)
    if (found === undefined) continue
    const { types, limits, subjects, from, until } = found.values
    if (types === undefined && limits === undefined && subjects === undefined) {
      reader.problem(field, 'needs `subjects`, `limits` or `types`: without any it would hide every alert')
    }
    const untilAt = found.fields.get('until')
    if (from === undefined || until === undefined || untilAt === undefined) continue
    if (until <= from) reader.problem(untilAt, 'must be after `from`')
    if (until - from > silenceLongestMs) reader.problem(untilAt, 'must be at most 30 days after `from`')
    const only = {
      ...(types === undefined ? {} : { types }),
      ...(limits === undefined ? {} : { limits }),
      ...(subjects === undefined ? {} : { subjects }),
    }
    silences.set(name, { name, only, fromMs: from, untilMs: until })
  }
  return silences
}
