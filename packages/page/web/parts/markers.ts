import type { ListedAlert } from '@weir/api/alerts.ts'
import type { ListedChange } from '@weir/api/policy.ts'
import type { Page } from '@weir/api/schema.ts'
import { pathOf, useAnswer } from '../api.ts'
import { isOwn, may } from '../session.ts'
import { describeChange } from './change-words.ts'
import type { Marker } from './plot.ts'
import { useSpan } from './span.ts'

/** More than that hide what they stand on. */
const markersMax = '50'

/** What happened in the chosen span: changes of the policy, alerts, and blocks. */
export function useMarkers(subject = ''): readonly Marker[] {
  const { range, zone } = useSpan()
  const changesPath = may('read') && !isOwn() ? pathOf('/v1/changes', { limit: markersMax }) : undefined
  const alertsPath = pathOf('/v1/alerts', { ...range, time_zone: zone, subject, limit: markersMax })
  const changes = useAnswer<Page<ListedChange>>(changesPath).data?.items ?? []
  const alerts = useAnswer<Page<ListedAlert>>(alertsPath).data?.items ?? []
  return [
    ...changes.map((one) => ({ ms: Date.parse(one.at), name: describeChange(one), kind: 'change' })),
    ...alerts.map(({ time, summary, type }) => ({
      ms: Date.parse(time),
      name: summary,
      kind: type === 'weir.limit.blocked' ? 'block' : 'alert',
    })),
  ]
}
