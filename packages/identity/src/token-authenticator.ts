import type { Policy } from '@weir/policy/policy.ts'
import { type Caller, type CredentialPlace, unauthenticated } from './caller.ts'
import type { IdentityRules } from './identity-rules.ts'
import { namedSubject } from './named-subject.ts'
import { createTokenVerifier, type KnownToken, type VerifierOptions } from './token-verifier.ts'

const bearer: CredentialPlace = { kind: 'header', name: 'authorization' }
/** An issuer that did not answer is asked again after 10 s at the latest. */
const unsure: Caller = { kind: 'unauthenticated', retryAfterMs: 10_000, isUnverifiable: true }

/** Who a verified token makes the caller, and under which policy that was computed. */
interface NotedCaller {
  readonly policy: Policy
  readonly caller: Caller
}

/** Authenticates callers by signed tokens. */
export function createTokenAuthenticator(options: VerifierOptions) {
  const verifier = createTokenVerifier<NotedCaller>(options)
  return {
    /**
     * Returns the caller directly for a token that was verified within the last minute. Undefined for a token that no
     * issuer of the policy was found to have signed. Never rejects.
     */
    authenticate(
      policy: Policy,
      rules: IdentityRules,
      { text, fingerprint }: { readonly text: string; readonly fingerprint: string },
    ): Caller | undefined | Promise<Caller | undefined> {
      const known = verifier.known(fingerprint, rules)
      if (known !== undefined) return callerOf(policy, known)
      return verifier.verify(text, fingerprint, rules).then((found) => callerOf(policy, found))
    },
  }
}

function callerOf(policy: Policy, found: KnownToken<NotedCaller>): Caller | undefined {
  if (found.note?.policy === policy) return found.note.caller
  const { answer } = found
  if (answer.kind === 'unsure') return unsure
  if (answer.kind === 'refused') return answer.isGuess ? undefined : unauthenticated
  const { issuer, claims } = answer
  const planName = issuer.planClaim === undefined ? undefined : claims[issuer.planClaim]
  const subject = namedSubject(policy, { id: claims[issuer.subjectClaim], planName, plan: issuer.plan })
  const caller: Caller =
    subject === undefined ? unauthenticated : { kind: 'known', subject, keyId: '', carriedIn: bearer }
  found.note = { policy, caller }
  return caller
}
