import { credentials, Metadata, makeClientConstructor, type ServiceError, status } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { inProject } from '../project.ts'
import {
  type AnsweredDecision,
  admissionOf,
  answerDeadlineMs,
  type LoadRequest,
  refusalOf,
  type Sender,
} from './sender.ts'

const service = 'envoy.service.ratelimit.v3.RateLimitService'
/** No route of a policy is for it, so that the entries name the caller and the request. */
const domain = 'weir-load'

interface Reply {
  readonly overallCode: number
  readonly responseHeadersToAdd: readonly { readonly key: string; readonly value: string }[]
  readonly rawBody: Buffer
}

type Call = (
  request: object,
  metadata: Metadata,
  options: { readonly deadline: number },
  done: (error: ServiceError | null, reply: Reply | undefined) => void,
) => void

function openStub(target: URL): { readonly call: Call; close(): void } {
  const folder = inProject('services', 'ingress', 'src', 'grpc', 'proto')
  const definition = loadSync('rls.proto', { includeDirs: [folder], longs: Number, defaults: true })[service]
  if (definition === undefined || 'format' in definition) throw new TypeError(`${folder} has no ${service}`)
  const secure = target.protocol === 'https:' ? credentials.createSsl() : credentials.createInsecure()
  const stub = new (makeClientConstructor(definition, service))(target.host, secure)
  const call: Call | undefined = stub.ShouldRateLimit?.bind(stub)
  if (call === undefined) throw new TypeError(`${service} has no ShouldRateLimit`)
  return { call, close: () => stub.close() }
}

const okCode = 1

function decisionOf({ overallCode, responseHeadersToAdd: headers, rawBody }: Reply): AnsweredDecision | undefined {
  const rateLimit = headers.find(({ key }) => key.toLowerCase() === 'ratelimit')?.value
  return overallCode === okCode ? admissionOf(rateLimit ?? '') : refusalOf(rawBody.toString('utf8'))
}

/** Entries name the caller and the request. */
const messageOf = ({ subject, method, path, cost }: LoadRequest) => ({
  domain,
  descriptors: [{ entries: Object.entries({ subject, method, path }).map(([key, value]) => ({ key, value })) }],
  ...(cost === undefined ? {} : { hitsAddend: cost }),
})

/** Asks Envoy's rate limit service. */
export function grpcSender(target: URL, token: string | undefined): Sender {
  const stub = openStub(target)
  const metadata = new Metadata()
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`)
  return {
    send(asked, onSent, onAnswer) {
      onSent()
      const deadline = Date.now() + answerDeadlineMs
      stub.call(messageOf(asked), metadata, { deadline }, (error, reply) => {
        const endedMs = performance.now()
        const isAnswered = error === null || ![status.UNAVAILABLE, status.DEADLINE_EXCEEDED].includes(error.code)
        const code = error === null ? 'OK' : (status[error.code] ?? String(error.code))
        onAnswer({ code, isAnswered, endedMs, decision: reply === undefined ? undefined : decisionOf(reply) })
      })
    },
    close: async () => stub.close(),
  }
}
