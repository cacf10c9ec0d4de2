import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
} from '@grpc/grpc-js'
import { loadRls } from './load-rls.ts'
import type { RlsRequest } from './rls-client.ts'

/** `nothing` is never answered; `error` is no answer of a rate limit service. */
export type RecordedAnswer = 'OK' | 'OVER_LIMIT' | 'error' | 'nothing'

type Answer = { readonly overall_code: string }
type RlsService = {
  readonly envoy: {
    readonly service: {
      readonly ratelimit: { readonly v3: { readonly RateLimitService: { readonly service: ServiceDefinition } } }
    }
  }
}

/** Starts a rate limit service that decides nothing: it keeps what it is asked, and `answerTo` says what it answers. */
export async function startRlsRecorder(answerTo: (request: RlsRequest) => RecordedAnswer) {
  const { envoy } = (await loadRls()) as unknown as RlsService
  const calls: RlsRequest[] = []
  const cancelled: RlsRequest[] = []
  const shouldRateLimit = (call: ServerUnaryCall<RlsRequest, Answer>, answer: sendUnaryData<Answer>) => {
    calls.push(call.request)
    const word = answerTo(call.request)
    if (word === 'nothing') call.once('cancelled', () => cancelled.push(call.request))
    if (word === 'error') answer({ details: 'as the test wants it' })
    else if (word !== 'nothing') answer(null, { overall_code: word })
  }
  const server = new Server()
  server.addService(envoy.service.ratelimit.v3.RateLimitService.service, { shouldRateLimit })
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound)
      else reject(error)
    })
  })
  return {
    port,
    /** Every request, in the order in which they came. */
    calls,
    /** Those that the caller gave up because they were not answered. */
    cancelled,
    close: () => server.forceShutdown(),
  }
}
