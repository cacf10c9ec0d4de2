import { useEffect, useState } from 'preact/hooks'
import { html } from '../html.ts'
import type { Connection } from './stream.ts'

/** Says that a stream is not there, and when it is tried again. */
export function Lost({ connection: { state, retryAtMs } }: { readonly connection: Connection }) {
  const [nowMs, setNow] = useState(Date.now())
  useEffect(() => {
    if (state !== 'lost') return
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [state])
  if (state === 'open') return null
  const words = {
    connecting: 'Connecting to the stream…',
    resting: 'Paused while this tab is hidden.',
    lost: 'Connection lost; reconnecting',
  }[state]
  const waitS = Math.max(0, Math.ceil((retryAtMs - nowMs) / 1_000))
  return html`<p class="note"><span role="status">${words}</span>${state === 'lost' && ` in ${waitS} s`}</p>`
}
