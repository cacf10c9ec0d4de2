import { formatTraceparent, newSpanId, parseTraceparent } from '@weir/contracts/trace-context.ts'
import type { Tracing } from '@weir/runtime/tracing.ts'
import type { SendAlert } from './channels/channels.ts'

/** Returns a way to send that traces each attempt of an alert whose decision is traced; the webhook names its span. */
export const traceDeliveries =
  (send: SendAlert, tracing: Tracing): SendAlert =>
  async (endpoint, alert) => {
    const raised = parseTraceparent(alert.traceparent ?? '')
    if (raised === undefined) return send(endpoint, alert)
    const { traceId, spanId: parentSpanId } = raised
    const spanId = newSpanId()
    const startMs = Date.now()
    const result = await send(endpoint, { ...alert, traceparent: formatTraceparent({ traceId, spanId }) })
    const { status, error } = result
    tracing.record({
      name: 'deliver',
      kind: 'client',
      traceId,
      spanId,
      parentSpanId,
      startMs,
      endMs: Date.now(),
      isError: error !== undefined,
      attributes: {
        'weir.alert.id': alert.id,
        'weir.endpoint': endpoint.name,
        'weir.endpoint.type': endpoint.type,
        ...(status === 0 ? {} : { 'http.response.status_code': status }),
      },
    })
    return result
  }
