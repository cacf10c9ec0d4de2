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
  ...redisVariables({ about: 'the Redis that decides' }),
  ...kafkaVariables,
  journalDir: text({ name: 'WEIR_JOURNAL_DIR', about: 'where decisions are kept until Kafka has them' }),
  journalMaxBytes: wholeNumber({
    name: 'WEIR_JOURNAL_MAX_BYTES',
    about: 'how much the journal may hold',
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
    about: '1 allows a journal on a disk that is gone with the container or the machine',
    fallback: '0',
    of: ['0', '1'],
  }),
  onJournalFull: choice({
    name: 'WEIR_ON_JOURNAL_FULL',
    about: 'what becomes of requests that cannot be recorded',
    fallback: 'refuse',
    of: ['refuse', 'admit'],
  }),
  recordAddress: choice({
    name: 'WEIR_RECORD_ADDRESS',
    about: 'how records say the address of a caller, where a limit counts by address',
    fallback: 'full',
    of: addressForms,
  }),
  logDecisions: choice({
    name: 'WEIR_LOG_DECISIONS',
    about: 'which decisions are lines of the log, too',
    fallback: 'off',
    of: ['off', 'denied', 'sampled', 'all'],
  }),
  ...tracingVariables,
  traceSubjects: choice({
    name: 'WEIR_TRACE_SUBJECTS',
    about: '1 lets spans of requests name the subject',
    fallback: '0',
    of: ['0', '1'],
  }),
  ingressHost: text({ name: 'WEIR_INGRESS_HOST', about: 'address of the proxy', fallback: '127.0.0.1' }),
  ingressPort: port({ name: 'WEIR_INGRESS_PORT', about: 'port of the proxy', fallback: '8080' }),
  proxyProtocol: choice({
    name: 'WEIR_PROXY_PROTOCOL',
    about: "whether the policy's trustedProxies begin each connection to the proxy with a PROXY header, v1 or v2",
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
    about: 'whether its callers need a token; auto: unless it listens on loopback',
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
    about: 'in which words answers tell of limits',
    fallback: 'draft10',
    of: rateLimitDialects,
  }),
  costStatus: choice({
    name: 'WEIR_COST_EXCEEDS_STATUS',
    about: 'the status of a request that costs more than a limit ever admits',
    fallback: '403',
    of: ['403', '413'],
  }),
  adminTokenSha256: adminTokenVariable,
  upstreamSubjectShare: wholeNumber({
    name: 'WEIR_UPSTREAM_SUBJECT_SHARE',
    about: "percent of an upstream's places that one subject may have once half are taken; 100 for all",
    fallback: '25',
    min: 1,
    max: 100,
  }),
  bodyRateMin: wholeNumber({
    name: 'WEIR_BODY_RATE_MIN',
    about: "bytes a second that a client's body must come with; 0 for no bound",
    fallback: '240',
    min: 0,
    max: 1_000_000,
  }),
  markersPerSubject: wholeNumber({
    name: 'WEIR_MARKERS_PER_SUBJECT',
    about: 'how many idempotency keys and decisions to be settled Redis keeps for a subject',
    fallback: '1000000',
    min: 100,
    max: 100_000_000,
  }),
  decisionDeadlineMs: wholeNumber({
    name: 'WEIR_DECISION_DEADLINE_MS',
    about: 'how long Redis may take before onUnavailable decides',
    fallback: '25',
    min: 1,
    max: 5_000,
  }),
} as const
