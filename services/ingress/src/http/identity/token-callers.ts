import type { PolicyView } from '../../policy-view.ts'
import { type Caller, type CredentialPlace, stranger } from './caller.ts'
import type { IdentityRules } from './identity-rules.ts'
import { namedSubject } from './named-subject.ts'
import { createTokenVerifier, type KnownToken, type VerifierOptions } from './token-verifier.ts'

const bearer: CredentialPlace = { kind: 'header', name: 'authorization' }
/** An issuer that did not answer is asked again after 10 s at the latest. */
const unsure: Caller = { kind: 'stranger', retryAfterMs: 10_000, isUnsure: true }

/** Who a verified token makes the caller, and under which view that was worked out. */
interface Noted {
  readonly view: PolicyView
  readonly caller: Caller
}

/** Undefined for a token that no issuer of the policy was found to have signed. */
type TokenCaller = Caller | undefined

/** Tells callers by their tokens. */
export interface TokenCallers {
  /** At once for a token that was verified within the last minute. Never rejects. */
  find(
    view: PolicyView,
    rules: IdentityRules,
    token: { readonly text: string; readonly fingerprint: string },
  ): TokenCaller | Promise<TokenCaller>
}

export function createTokenCallers(options: VerifierOptions): TokenCallers {
  const verifier = createTokenVerifier<Noted>(options)
  return {
    find(view, rules, { text, fingerprint }) {
      const known = verifier.known(fingerprint, rules)
      if (known !== undefined) return callerOf(view, known)
      return verifier.verify(text, fingerprint, rules).then((found) => callerOf(view, found))
    },
  }
}

function callerOf(view: PolicyView, found: KnownToken<Noted>): TokenCaller {
  if (found.note?.view === view) return found.note.caller
  const { answer } = found
  if (answer.kind === 'unsure') return unsure
  if (answer.kind === 'refused') return answer.isGuess ? undefined : stranger
  const { issuer, claims } = answer
  const planName = issuer.planClaim === undefined ? undefined : claims[issuer.planClaim]
  const subject = namedSubject(view.policy, { id: claims[issuer.subjectClaim], planName, plan: issuer.plan })
  const caller: Caller = subject === undefined ? stranger : { kind: 'known', subject, keyId: '', carriedIn: bearer }
  found.note = { view, caller }
  return caller
}
