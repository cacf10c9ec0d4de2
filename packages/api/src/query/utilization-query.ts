import { utilizationFilters, utilizationOrders } from './columns.ts'
import { utilizationParameters } from './parameters.ts'
import {
  type GivenParameters,
  type Parsed,
  readFilters,
  readParameters,
  readSpan,
  type Values,
} from './read-parameters.ts'

type Sorted = (typeof utilizationOrders)[number]

/** One question for how near subjects come to their limits. */
export interface UtilizationQuery {
  readonly only: Values<'subject' | 'limit'>
  readonly except: Values<'subject' | 'limit'>
  /** Only subjects that begin so; undefined for all. */
  readonly subjectPrefix: string | undefined
  /** First instant that counts, and the first that no longer does. */
  readonly fromMs: number
  readonly toMs: number
  /** Only rows whose share is at least the first and below the second; undefined for any. */
  readonly shareFrom: number | undefined
  readonly shareTo: number | undefined
  /** Rows that are equal in it are in order of subject and limit. */
  readonly order: { readonly by: Sorted; readonly descending: boolean }
  /** The rows of a page. */
  readonly limit: number
  /** Whether counts are text, for readers whose numbers end at 2^53. */
  readonly sumsAreText: boolean
}

const dayMs = 86_400_000

/** The filters by the columns of the table. */
function readColumns(prefix: '' | 'not_', given: GivenParameters, problems: string[]): Values<'subject' | 'limit'> {
  const { met_limit: limit, ...rest } = readFilters(utilizationFilters, prefix, given, problems)
  return limit === undefined ? rest : { ...rest, limit }
}

function readShare(name: string, text: string | undefined, problems: string[]): number | undefined {
  if (text === undefined) return undefined
  const share = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : undefined
  if (share === undefined)
    problems.push(`${name} must be a part of a limit’s size like 0.8, but is ${JSON.stringify(text)}`)
  return share
}

const readOrder = (text: string): UtilizationQuery['order'] => ({
  by: utilizationOrders.find((one) => one === text.replace(/^-/, '')) ?? 'share',
  descending: text.startsWith('-'),
})

/** Reads a question; the default is the last 24 hours, what is nearest to its limit first. All problems together. */
export function parseUtilizationQuery(given: GivenParameters, nowMs: number): Parsed<UtilizationQuery> {
  const problems: string[] = []
  const params = readParameters(utilizationParameters, given, problems)
  const { limit = '100' } = params
  const { fromMs, toMs } = readSpan(params, { nowMs, spanMs: dayMs }, problems)
  const query: UtilizationQuery = {
    only: readColumns('', given, problems),
    except: readColumns('not_', given, problems),
    subjectPrefix: params.subject_prefix,
    fromMs,
    toMs,
    shareFrom: readShare('share_from', params.share_from, problems),
    shareTo: readShare('share_to', params.share_to, problems),
    order: readOrder(params.order ?? '-share'),
    limit: Number(limit),
    sumsAreText: params.numbers === 'text',
  }
  if (!/^\d+$/.test(limit)) problems.push('limit is the rows of a page, and met_limit the name of a limit')
  if ((query.shareFrom ?? 0) >= (query.shareTo ?? Number.POSITIVE_INFINITY)) {
    problems.push('share_from must be below share_to')
  }
  return problems.length > 0 ? { kind: 'problems', problems } : { kind: 'query', query }
}

/** Where a row is in the order of its answer: the text of what it is sorted by, its subject and its limit. */
export function utilizationPosition(
  { order: { by, descending } }: UtilizationQuery,
  row: Readonly<Record<Sorted, string | number> & { subject: string; limit: string }>,
): readonly string[] {
  const value = String(row[by])
  return [descending ? negated(value) : value, row.subject, row.limit]
}

/** Every row ascends by its position. */
const negated = (value: string) => (value.startsWith('-') ? value.slice(1) : `-${value}`)
const [shareForm, sumForm] = [/^-?\d{1,20}(\.\d{1,30})?(e[+-]?\d{1,2})?$/, /^-?\d{1,38}$/]

/** Whether these texts can be a position in the order of this question. */
export const isUtilizationPosition = ({ order }: UtilizationQuery, position: readonly string[]): boolean =>
  position.length === 3 && (order.by === 'share' ? shareForm : sumForm).test(position[0] ?? '')
