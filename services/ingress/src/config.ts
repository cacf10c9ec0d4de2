import { rateLimitDialects } from '@weir/core/limits/rate-limit-headers.ts'
import { addressForms } from '@weir/decide/record/counted-by.ts'
import { kafkaVariables } from '@weir/kafka/kafka-variables.ts'
import { policyAgeVariables, policySourceVariables } from '@weir/policy-feed/service-policy.ts'
import { redisVariables } from '@weir/redis/redis-url.ts'
import { adminTokenVariable } from '@weir/runtime/admin-token.ts'
import { idleTimeoutVariable } from '@weir/runtime/bound-connections.ts'
import { choice, port, text, wholeNumber } from '@weir/runtime/read-config.ts'
import { serviceVariables } from '@weir/runtime/start-service.ts'
import { tlsVariables } from '@weir/runtime/tls-listener.ts'
import { tracingVariables } from '@weir/runtime/tracing.ts'

/** Everything the ingress reads from its environment. */
export const ingressVariables = {
  ...serviceVariables(9101),
  ...policySourceVariables,
  ...policyAgeVariables,
  ...redisVariables({ about: 'Redis for limits' }),
  ...kafkaVariables,
  journalDir: text({ name: 'WEIR_JOURNAL_DIR', about: 'directory for decisions until Kafka has them' }),
  journalMaxBytes: wholeNumber({
    name: 'WEIR_JOURNAL_MAX_BYTES',
    about: 'maximum size of the journal',
    fallback: String(1024 ** 3), // two hours of 300 decisions a second, at 450 bytes each
    min: 32 * 1024 ** 2, // sixteen of the smallest segments, each with space for two of the largest records
    max: 1024 ** 4,
  }),
  journalFsyncMs: wholeNumber({
    name: 'WEIR_JOURNAL_FSYNC_MS',
    about: 'how often the journal is synced to the disk; 0 leaves it to the kernel',
    fallback: '0',
    min: 0,
    max: 60_000,
  }),
  journalEphemeral: choice({
    name: 'WEIR_JOURNAL_EPHEMERAL',
    about: '1: allow a journal on a disk that does not outlive the container or machine',
    fallback: '0',
    of: ['0', '1'],
  }),
  onJournalFull: choice({
    name: 'WEIR_ON_JOURNAL_FULL',
    about: 'how requests are handled that cannot be recorded',
    fallback: 'refuse',
    of: ['refuse', 'admit'],
  }),
  recordAddress: choice({
    name: 'WEIR_RECORD_ADDRESS',
    about: "how records store a caller's address, for limits that count per address",
    fallback: 'full',
    of: addressForms,
  }),
  logDecisions: choice({
    name: 'WEIR_LOG_DECISIONS',
    about: 'which decisions are also logged',
    fallback: 'off',
    of: ['off', 'denied', 'sampled', 'all'],
  }),
  ...tracingVariables,
  traceSubjects: choice({
    name: 'WEIR_TRACE_SUBJECTS',
    about: '1: spans of requests include the subject',
    fallback: '0',
    of: ['0', '1'],
  }),
  ingressHost: text({ name: 'WEIR_INGRESS_HOST', about: 'address of the proxy', fallback: '127.0.0.1' }),
  ingressPort: port({ name: 'WEIR_INGRESS_PORT', about: 'port of the proxy', fallback: '8080' }),
  proxyProtocol: choice({
    name: 'WEIR_PROXY_PROTOCOL',
    about: "yes: the policy's trustedProxies send a PROXY header (v1 or v2) first on each connection",
    fallback: 'no',
    of: ['yes', 'no'],
  }),
  idleTimeoutMs: idleTimeoutVariable,
  apiHost: text({ name: 'WEIR_API_HOST', about: 'address of the check API', fallback: '127.0.0.1' }),
  apiPort: port({ name: 'WEIR_API_PORT', about: 'port of the check API', fallback: '8081' }),
  grpcHost: text({ name: 'WEIR_GRPC_HOST', about: "address of Envoy's rate limit service", fallback: '127.0.0.1' }),
  grpcPort: port({ name: 'WEIR_GRPC_PORT', about: "port of Envoy's rate limit service", fallback: '8082' }),
  grpcAuth: choice({
    name: 'WEIR_GRPC_AUTH',
    about: 'whether callers of that service need a token; auto: yes, unless it listens on loopback',
    fallback: 'auto',
    of: ['auto', 'token', 'none'],
  }),
  ...tlsVariables('tls'),
  ...tlsVariables('apiTls'),
  ...tlsVariables('grpcTls'),
  sharePorts: choice({
    name: 'WEIR_SHARE_PORTS',
    about: 'whether several ingress processes listen on the same ports (SO_REUSEPORT)',
    fallback: 'no',
    of: ['yes', 'no'],
  }),
  rateLimitHeaders: choice({
    name: 'WEIR_RATELIMIT_HEADERS',
    about: 'names of the rate-limit headers',
    fallback: 'draft10',
    of: rateLimitDialects,
  }),
  costStatus: choice({
    name: 'WEIR_COST_EXCEEDS_STATUS',
    about: 'status of requests that cost more than a limit can ever allow',
    fallback: '403',
    of: ['403', '413'],
  }),
  adminTokenSha256: adminTokenVariable,
  upstreamSubjectShare: wholeNumber({
    name: 'WEIR_UPSTREAM_SUBJECT_SHARE',
    about: "maximum percentage of an upstream's places per subject once half are taken; 100: all",
    fallback: '25',
    min: 1,
    max: 100,
  }),
  bodyRateMin: wholeNumber({
    name: 'WEIR_BODY_RATE_MIN',
    about: "minimum bytes per second of a client's body; 0: no minimum",
    fallback: '240',
    min: 0,
    max: 1_000_000,
  }),
  markersPerSubject: wholeNumber({
    name: 'WEIR_MARKERS_PER_SUBJECT',
    about: 'maximum idempotency keys and unsettled decisions of a subject in Redis',
    fallback: '1000000',
    min: 100,
    max: 100_000_000,
  }),
  decisionDeadlineMs: wholeNumber({
    name: 'WEIR_DECISION_DEADLINE_MS',
    about: 'timeout for Redis, after which onUnavailable decides',
    fallback: '25',
    min: 1,
    max: 5_000,
  }),
} as const
