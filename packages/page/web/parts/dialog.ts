import { useEffect, useRef, useState } from 'preact/hooks'
import type { Refusal } from '../api.ts'
import { type Children, html } from '../html.ts'
import { Fault } from './panel.ts'

/** What a button does that changes something. */
export interface ActionProps {
  readonly label: string
  /** What it will do, said before it is done. */
  readonly about: Children
  readonly run: () => Promise<Children | undefined>
  readonly isDanger?: boolean
  readonly isDisabled?: boolean
}

/**
 * A button that says first what it will do, and does it once confirmed. What `run` answers is shown until it is closed:
 * a key that is told only once.
 */
export function Action({ label, about, run, isDanger = false, isDisabled = false }: ActionProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOpen, setOpen] = useState(false)
  const [state, setState] = useState<{ readonly error?: Refusal; readonly done?: Children; readonly isBusy?: boolean }>(
    {},
  )
  useEffect(() => {
    if (isOpen) dialog.current?.showModal()
    else dialog.current?.close()
  }, [isOpen])
  const close = () => {
    setOpen(false)
    setState({})
  }
  const confirm = async (event: Event) => {
    event.preventDefault()
    setState({ isBusy: true })
    try {
      const done = await run()
      if (done === undefined) close()
      else setState({ done })
    } catch (error) {
      setState({ error: error as Refusal })
    }
  }
  return html`
    <button class=${isDanger ? 'danger' : ''} disabled=${isDisabled} onClick=${() => setOpen(true)}>${label}</button>
    <dialog ref=${dialog} onClose=${close} aria-label=${label}>
      ${
        isOpen &&
        html`<form class="stack" onSubmit=${confirm}>
        <h2>${label}</h2>
        <div class="stack">${state.done ?? about}</div>
        ${state.error !== undefined && html`<${Fault} error=${state.error} />`}
        <div class="row">
          ${
            state.done === undefined
              ? html`<button class=${isDanger ? 'danger' : 'main'} type="submit" disabled=${state.isBusy === true}>${label}</button>
                  <button type="button" onClick=${close}>Cancel</button>`
              : html`<button type="button" class="main" onClick=${close}>Done</button>`
          }
        </div>
      </form>`
      }
    </dialog>
  `
}

/** The value that somebody typed into a field. */
export const typed = (event: Event): string => (event.currentTarget as HTMLInputElement).value
