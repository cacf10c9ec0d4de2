import { answer, operation } from './operation.ts'
import { utilizationParameters } from './query/parameters.ts'
import { list, next, type Of, object, text, textOrNull } from './schema.ts'
import { Type } from './type.ts'
import { completeness, gaps } from './usage.ts'

const share = (description: string) => Type.Number({ minimum: 0, description: `${description}, 0.8 for 80%` })
const count = (description: string) =>
  Type.Unsafe<string>({ type: ['integer', 'string'], description: `${description}; text if so asked` })
const utilizationCounts = {
  used: count('units in use then; of a limit that counts by more than the subject, of its fullest count'),
  size: count('of the limit, then'),
  count: count('decisions that met the limit'),
  refused: count('decisions that it refused'),
  shadow_refused: count('decisions that it would have refused, were it not in shadow'),
  cost: count('units of allowed decisions, without corrections'),
}
/** The columns of utilization whose values are counts. */
export const utilizationCountNames: ReadonlySet<string> = new Set(Object.keys(utilizationCounts))
const utilizationRow = object({
  subject: text('whose'),
  limit: text('name of the limit'),
  share: share('the largest part of its size that was in use at one time'),
  ...utilizationCounts,
  at: text('RFC 3339: start of the last quarter hour that had this share'),
  runs_out: textOrNull(
    'RFC 3339: when the quota is used up at the mean pace of 7 days; null: not in its running period',
  ),
  removed: Type.Boolean({ description: 'whether the limit has left the policy since' }),
})
/** How near a subject came to a limit. */
export type UtilizationRow = Of<typeof utilizationRow>

/** How near subjects come to their limits. */
export const getUtilization = operation('GET /v1/utilization', {
  tag: 'usage',
  scope: 'usage',
  isParsed: true,
  summary: 'How near subjects come to their limits',
  query: utilizationParameters,
  answers: {
    200: answer(
      'A page of subjects with their limits',
      object({
        from: text('RFC 3339, widened'),
        to: text('RFC 3339, widened'),
        source: text('the table'),
        ...completeness,
        gaps,
        next,
        rows: list(utilizationRow),
      }),
    ),
  },
  problems: [422, 429, 503, 504],
})
