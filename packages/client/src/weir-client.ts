/* The public names of @weir/client. */

export { callerKey, type OptionalCheck, type WithWeir } from './check-arrival.ts'
export type { CheckRequest } from './check-request.ts'
export type { CheckResult, LimitState, OnExceed, Reason } from './check-result.ts'
export { type Problem, WeirClientError, type WeirClientErrorCode } from './client-error.ts'
export {
  type CallOptions,
  type ClientOptions,
  createClient,
  type PauseRequest,
  type SettleRequest,
  type WeirClient,
} from './create-client.ts'
export type { Duration } from './duration.ts'
export type { LeaseCounters, LeaseOptions } from './leases/leases.ts'
export { createLimitedFetch, type LimitedFetchOptions } from './limited-fetch.ts'
export { type Refusal, refusalOf } from './refusal.ts'
export { type WeirExpressOptions, weirExpress } from './weir-express.ts'
export { type WeirFastifyOptions, weirFastify } from './weir-fastify.ts'
