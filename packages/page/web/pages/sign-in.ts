import { useState } from 'preact/hooks'
import { type Refusal, signIn } from '../api.ts'
import { html } from '../html.ts'
import { Field } from '../parts/field.ts'
import { Fault } from '../parts/panel.ts'

/** Asks for a token; the page that was opened then goes on. */
export function SignIn({ isAgain = false }: { readonly isAgain?: boolean }) {
  const [token, setToken] = useState('')
  const [error, setError] = useState<Refusal>()
  const submit = (event: Event) => {
    event.preventDefault()
    signIn(token.trim()).catch((one: Refusal) => setError(one))
  }
  return html`<form class=${isAgain ? 'stack' : 'panel stack sign-in'} onSubmit=${submit}>
    ${isAgain ? html`<h2>Sign in again</h2><p>Your session has ended. Sign in to continue here.</p>` : html`<h1>Weir</h1>`}
    <${Field} label="Token" type="password" autocomplete="current-password" required autofocus value=${token} onValue=${setToken} />
    ${error?.status === 401 && html`<div class="fault" role="alert"><b>Not signed in.</b> Unknown or expired token.</div>`}
    ${error !== undefined && error.status !== 401 && html`<${Fault} error=${error} />`}
    <div><button class="main" type="submit">Sign in</button></div>
    <p class="small quiet"><code>weir up</code> prints a token when it starts. API tokens, portal tokens and keys on a plan with <code>selfService</code> work too.</p>
  </form>`
}
