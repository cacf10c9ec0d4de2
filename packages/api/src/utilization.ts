import { answer, operation } from './operation.ts'
import { utilizationParameters } from './query/parameters.ts'
import { list, next, type Of, object, text, textOrNull } from './schema.ts'
import { Type } from './type.ts'
import { completeness, gaps } from './usage.ts'

const share = (description: string) => Type.Number({ minimum: 0, description: `${description}, such as 0.8 for 80%` })
const count = (description: string) =>
  Type.Unsafe<string>({ type: ['integer', 'string'], description: `${description}; text with \`numbers=text\`` })
const utilizationCounts = {
  used: count('units in use at that time; for a limit with several counts per subject, of the fullest one'),
  size: count('size of the limit at that time'),
  count: count('decisions that met the limit'),
  refused: count('decisions that the limit refused'),
  shadow_refused: count('decisions that the limit would have refused outside shadow mode'),
  cost: count('units of allowed decisions, without corrections'),
}
/** The columns of utilization whose values are counts. */
export const utilizationCountNames: ReadonlySet<string> = new Set(Object.keys(utilizationCounts))
const utilizationRow = object({
  subject: text('subject id'),
  limit: text('name of the limit'),
  share: share('peak use as a share of the limit'),
  ...utilizationCounts,
  at: text('RFC 3339: start of the last quarter hour at this peak'),
  runs_out: textOrNull(
    'RFC 3339: when the quota runs out at the average rate of the last 7 days; null: not in the current period',
  ),
  removed: Type.Boolean({ description: 'whether the limit has since been removed from the policy' }),
})
/** How near a subject came to a limit. */
export type UtilizationRow = Of<typeof utilizationRow>

/** How near subjects come to their limits. */
export const getUtilization = operation('GET /v1/utilization', {
  tag: 'usage',
  scope: 'usage',
  isParsed: true,
  summary: 'Get how close subjects come to their limits',
  query: utilizationParameters,
  answers: {
    200: answer(
      'A page of subjects with their limits',
      object({
        from: text('RFC 3339, widened'),
        to: text('RFC 3339, widened'),
        source: text('the table queried'),
        ...completeness,
        gaps,
        next,
        rows: list(utilizationRow),
      }),
    ),
  },
  problems: [422, 429, 503, 504],
})
