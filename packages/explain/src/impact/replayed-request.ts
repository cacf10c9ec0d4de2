import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import { isOfOneSubject, type Limit, partText } from '@weir/core/limits/limit.ts'
import { ancestorsOf } from '@weir/policy/ancestors.ts'
import { descriptorMethod } from '@weir/policy/match/match-descriptor.ts'
import type { RequestRow } from './impact-queries.ts'
import type { PolicyEdit } from './policy-edit.ts'
import type { ReplayedRequest } from './replay.ts'

/** What keeps a replay from being exact, with the decisions that it is about. */
export class Doubts {
  readonly #counts = new Map<string, number>()

  add(what: string, count = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + count)
  }

  /** @returns sentences, each with how many decisions it is about */
  sentences(): readonly string[] {
    return [...this.#counts].map(([what, count]) => `${what} (${count === 1 ? 'one record' : `${count} records`}).`)
  }
}

/** What may make a replay differ from what would have been. */
export const doubtful = {
  spread: 'Requests that share a record are spread evenly over the rest of their second',
  coalesced: 'Identical refusals that share a record within a second are replayed at the time of the first',
  corrected: 'Cost corrections take effect before the next decision recorded by the same process',
  descriptors: 'Descriptors with their own values or costs are decided as one request',
  prefix: 'Addresses recorded as a group of 256 count as one',
  lease: (limit: string) => `No leased unit of ${limit} is left unused`,
  delay: (limit: string) => `Requests above ${limit} are decided immediately instead of waiting`,
  shared: (limit: string) => `${limit} also counts other subjects' requests, which are not replayed`,
  inFlight: (limit: string) => `${limit} counts requests in flight, which are not replayed`,
  units: (limit: string, unit: string) => `${limit} counts ${unit}, which are not replayed`,
  unknown: (limit: string, part: string) => `${limit} is not applied to requests without a recorded ${part}`,
}

/** Reads the values that a recorded request was counted by. */
function valuesOf({ ip, bys }: RequestRow): ReadonlyMap<string, string> {
  const values = new Map(bys.flatMap((by) => Object.entries(by)))
  return ip === '' ? values : values.set('ip', ip)
}

const alwaysRecorded: readonly string[] = ['subject', 'global', 'key', 'route', 'method']

/** The limits of a request that can be replayed: those whose scopes were recorded. */
function knownLimits(limits: readonly Limit[], row: RequestRow, values: ReadonlyMap<string, string>, doubts: Doubts) {
  for (const limit of limits) {
    if (!isOfOneSubject(limit.by) || limit.level !== undefined) doubts.add(doubtful.shared(limit.name))
    if (limit.lease > 0) doubts.add(doubtful.lease(limit.name))
    if (limit.onExceed.kind === 'delay' && limit.mode === 'enforce') doubts.add(doubtful.delay(limit.name))
    if (limit.by.some(({ kind }) => kind === 'ip') && values.get('ip')?.endsWith('.0/24')) doubts.add(doubtful.prefix)
  }
  if (row.method === descriptorMethod && row.bys.length > 0) doubts.add(doubtful.descriptors)
  return limits.filter((limit) => {
    const { name, by, unit = 'requests' } = limit
    if (countsInFlight(limit) || unit !== 'requests') {
      doubts.add(countsInFlight(limit) ? doubtful.inFlight(name) : doubtful.units(name, unit))
      return false
    }
    const missing = by.find((part) => !alwaysRecorded.includes(part.kind) && !values.has(partText(part)))
    if (missing !== undefined) doubts.add(doubtful.unknown(name, partText(missing)))
    return missing === undefined
  })
}

/** Returns a recorded request as the edited policy's limits are to decide it. */
export function requestOf(edit: PolicyEdit, subject: string, row: RequestRow, doubts: Doubts): ReplayedRequest {
  const { ts_ms: atMs, key_id: keyId, plan, route, method, cost, count } = row
  const { subject: found, limits } = edit.resolve({ subject, plan, route })
  const values = valuesOf(row)
  const scope = {
    subject,
    keyId,
    ip: values.get('ip') ?? '',
    route,
    method,
    named: values,
    above: found.parent && ancestorsOf(found),
  }
  if (count > 1) doubts.add(doubtful.coalesced)
  if (row.shared > 1) doubts.add(doubtful.spread)
  const { timeZone, anchor } = found
  return { atMs, count, cost, scope, limits: knownLimits(limits, row, values, doubts), timeZone, anchor }
}
