import type { Policy } from '@weir/policy/policy.ts'
import { type Caller, type CallerRequest, unauthenticated } from './caller.ts'
import type { IdentityRules } from './identity-rules.ts'
import { anonymousSubject, namedSubject } from './named-subject.ts'
import { callerScope, mayNameSubjects } from './peer.ts'

/** Authenticates the subject that a trusted proxy names, else an anonymous caller by its address. */
export function authenticateWithoutCredential(policy: Policy, rules: IdentityRules, request: CallerRequest): Caller {
  const { headers, socket } = request
  const { trusted, identity } = rules
  const id = trusted === undefined ? undefined : headers[trusted.subject]
  if (trusted !== undefined && id !== undefined && id !== '' && mayNameSubjects(socket, rules)) {
    const { planHeader, plan, place } = trusted
    const planName = planHeader === undefined ? undefined : headers[planHeader]
    const subject = isRepeated(id) ? undefined : namedSubject(policy, { id, planName, plan })
    return subject === undefined ? unauthenticated : { kind: 'known', subject, keyId: '', carriedIn: place }
  }
  if (identity.anonymousPlan === undefined) return unauthenticated
  const scope = callerScope(socket, headers, rules)
  if (scope === '') return unauthenticated
  return { kind: 'known', subject: anonymousSubject(scope, identity.anonymousPlan), keyId: '', carriedIn: undefined }
}

/** Node joins repeated headers with a comma: a caller could have added one to the proxy's. */
const isRepeated = (value: string | readonly string[]) => typeof value !== 'string' || value.includes(',')
