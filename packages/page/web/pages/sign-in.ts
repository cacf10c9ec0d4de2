import { useState } from 'preact/hooks'
import { type Refusal, signIn } from '../api.ts'
import { html } from '../html.ts'
import { typed } from '../parts/dialog.ts'
import { Fault } from '../parts/panel.ts'

/** Asks for a token; the page that was opened then goes on. */
export function SignIn() {
  const [token, setToken] = useState('')
  const [error, setError] = useState<Refusal>()
  const submit = (event: Event) => {
    event.preventDefault()
    signIn(token.trim()).catch((one: Refusal) => setError(one))
  }
  return html`<main>
    <form class="panel stack sign-in" onSubmit=${submit}>
      <h1>Weir</h1>
      <label class="field">Token
        <input type="password" autocomplete="current-password" required value=${token} onInput=${(event: Event) => setToken(typed(event))} />
      </label>
      ${error !== undefined && html`<${Fault} error=${error} />`}
      <div><button class="main" type="submit">Sign in</button></div>
      <p class="small quiet"><code>weir up</code> prints a token when it starts. A token of the policy, a portal's token or a key with <code>selfService</code> opens what it may see.</p>
    </form>
  </main>`
}
