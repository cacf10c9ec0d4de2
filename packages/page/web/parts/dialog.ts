import { useEffect, useRef, useState } from 'preact/hooks'
import { Refusal } from '../api.ts'
import { type Children, html } from '../html.ts'
import { may } from '../session.ts'
import { Field } from './field.ts'
import { Copy, Fault } from './panel.ts'

/** A secret that is shown this once. */
interface Secret {
  readonly about: Children
  readonly secret: string
}

/** What a button does that changes something. */
export interface ActionProps<Answer> {
  readonly label: string
  /** What it will do, said before it is done. */
  readonly about: Children
  readonly run: () => Promise<Answer>
  /** What is shown of the answer, until it is closed; without that it closes by itself. */
  readonly said?: (answer: Answer) => Children | Secret
  /** Asks again for what it has changed. */
  readonly again?: () => void
  /** The scope that it takes: without it the button says so, and does nothing. */
  readonly scope?: string
  readonly isDanger?: boolean
  readonly isDisabled?: boolean
  /** What must be typed first, where what is done cannot be undone. */
  readonly confirm?: string | undefined
  /** Open from the start and without a button of its own; called when it was closed. */
  readonly opened?: () => void
}

interface State {
  readonly error?: Refusal
  readonly done?: Children | Secret
  readonly isBusy?: boolean
}

const isSecret = (done: Children | Secret): done is Secret =>
  typeof done === 'object' && done !== null && 'secret' in done

/** The outcome, until it is closed. */
function Done({ done, close }: { readonly done: Children | Secret; readonly close: () => void }) {
  const hasSecret = isSecret(done)
  return html`<div class="stack" role="status">${hasSecret ? html`<p>${done.about}</p><pre class="wrapped">${done.secret}</pre>` : done}</div>
    <div class="row">
      ${hasSecret && html`<${Copy} text=${done.secret} label="Copy" kind="main" />`}
      <button type="button" onClick=${close}>Done</button>
    </div>`
}

/** A button that says first what it will do, and does it once confirmed. */
export function Action<Answer>(props: ActionProps<Answer>) {
  const { label, about, run, said, again, scope, isDanger = false, isDisabled = false, confirm, opened } = props
  const mayRun = scope === undefined || may(scope)
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOpen, setOpen] = useState(opened !== undefined)
  const [state, setState] = useState<State>({})
  const [given, setGiven] = useState('')
  // Once it is done there may be nothing more to do, which a label then says.
  const title = useRef(label)
  if (state.done === undefined) title.current = label
  useEffect(() => {
    if (isOpen) dialog.current?.showModal()
    else dialog.current?.close()
  }, [isOpen])
  const close = () => {
    setOpen(false)
    setState({})
    setGiven('')
    opened?.()
  }
  const submit = async (event: Event) => {
    event.preventDefault()
    setState({ isBusy: true })
    try {
      const answer = await run()
      again?.()
      const done = said?.(answer)
      if (done === undefined) close()
      else setState({ done })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      setState({ error })
    }
  }
  const isHeld = state.isBusy === true || (confirm !== undefined && given !== confirm)
  const content = () =>
    state.done !== undefined
      ? html`<${Done} done=${state.done} close=${close} />`
      : html`<div class="stack">${about}</div>
        ${confirm !== undefined && html`<${Field} label=${`Type ${confirm} to confirm`} value=${given} onValue=${setGiven} autocomplete="off" />`}
        ${state.error !== undefined && html`<${Fault} error=${state.error} />`}
        <div class="row">
          <button class=${isDanger ? 'danger' : 'main'} type="submit" disabled=${isHeld}>${label}</button>
          <button type="button" onClick=${close}>Cancel</button>
        </div>`
  return html`
    ${opened === undefined && html`<button class=${isDanger ? 'danger' : ''} disabled=${isDisabled || !mayRun} title=${mayRun ? undefined : `Your token lacks the scope ${scope}`} onClick=${() => setOpen(true)}>${label}</button>`}
    <dialog ref=${dialog} onClose=${close} aria-label=${title.current}>
      ${isOpen && html`<form class="stack" onSubmit=${submit}><h2>${title.current}</h2>${content()}</form>`}
    </dialog>
  `
}
