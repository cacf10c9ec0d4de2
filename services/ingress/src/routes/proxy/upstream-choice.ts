import type { Route, Upstream } from '@weir/policy/policy.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'
import type { PolicyView } from '../../policy-view.ts'
import { noUpstream } from './answers.ts'
import type { SetHeaders, UpstreamHeaders } from './upstream-headers.ts'

const unmeteredRoute = problem(
  'unmetered-route',
  'Not metered',
  403,
  'This upstream is used through metered routes only, and no route of the policy meters this request.',
)
const credentialMissing = problem(
  'credential-missing',
  'Credential missing',
  503,
  "The upstream's credential is not set. Its operator finds the variable in the policy.",
)

/** Where a request goes. */
export interface ChosenUpstream {
  readonly upstream: Upstream
  readonly setHeaders: SetHeaders | undefined
}

/** Says where requests go, or why one goes nowhere. */
export const createUpstreamChoice =
  (headers: UpstreamHeaders) =>
  (view: Pick<PolicyView, 'resolveUpstream'>, host: string | undefined, route: Route): ChosenUpstream | Problem => {
    const upstream = view.resolveUpstream(host ?? '', route)
    if (upstream === undefined) return noUpstream
    if (upstream.isMetered === true && route.meter === undefined) return unmeteredRoute
    const setHeaders = upstream.headers && headers.of(upstream)
    return upstream.headers !== undefined && setHeaders === undefined ? credentialMissing : { upstream, setHeaders }
  }
