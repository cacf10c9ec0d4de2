import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from '../html.ts'
import { go, hrefOf } from '../location.ts'
import { isOwn } from '../session.ts'
import { shiftSpan } from './span.ts'

const targets: Readonly<Record<string, readonly [path: string, name: string]>> = {
  o: ['/', 'overview'],
  l: ['/live', 'live'],
  u: ['/usage', 'usage'],
  s: ['/subjects', 'subjects'],
  d: ['/decisions', 'decisions'],
  a: ['/alerts', 'alerts'],
  p: ['/policy', 'policy'],
}

const areOff = () => localStorage.getItem('keys') === 'off'

/** Moves the focus to what the row before or behind leads to. */
function walkRows(by: -1 | 1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('main tbody tr')]
  const links = rows.map((row) => row.querySelector<HTMLElement>('a, button')).filter((one) => one !== null)
  const row = document.activeElement?.closest('tr') ?? null
  const at = links.findIndex((one) => one.closest('tr') === row)
  const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.max(0, Math.min(links.length - 1, at + by))]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

const press = (selector: string) => document.querySelector<HTMLElement>(selector)?.click()

/** What a single key does, anywhere but in fields. */
const actions: Readonly<Record<string, () => void>> = {
  '/': () => document.querySelector<HTMLInputElement>('input[type=search]')?.focus(),
  j: () => walkRows(1),
  k: () => walkRows(-1),
  x: () => document.activeElement?.closest('tr')?.querySelector<HTMLElement>('button:not(:disabled)')?.click(),
  '[': () => shiftSpan(-1),
  ']': () => shiftSpan(1),
  t: () => press('main .as-table'),
  '?': () => press('.help'),
}

/** What a customer's page has no use for: it is one page, without a search, and no row of it has a button. */
const areOperators = (key: string) => ['/', 'x', 'g'].includes(key)

/** Keys that act without Ctrl or Alt; WCAG 2.1.4: `?` lists them, and there they can be switched off. */
export function useKeys(): void {
  useEffect(() => {
    let isGoing = false
    const onKey = (event: KeyboardEvent) => {
      const inField =
        event.target instanceof Element && event.target.closest('input, textarea, select, dialog') !== null
      if (inField || event.ctrlKey || event.metaKey || event.altKey || areOff()) return
      if (isOwn() && areOperators(event.key)) return
      const target = isGoing ? targets[event.key] : undefined
      isGoing = event.key === 'g'
      if (target !== undefined) return go(hrefOf(target[0]))
      const act = Object.hasOwn(actions, event.key) ? actions[event.key] : undefined
      if (act === undefined) return
      event.preventDefault()
      act()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

const rows: readonly (readonly [keys: string, what: string])[] = [
  ['/', 'search for a name, id, address or time: acme 10:05'],
  ...Object.entries(targets).map(([key, [, name]]) => [`g ${key}`, `go to ${name}`] as const),
  ['j, k', 'next or previous row'],
  ['Enter', 'open the row'],
  ['x', 'press the first button of the row'],
  ['[, ]', 'previous or next period'],
  ['t', 'switch between chart and table'],
  ['←, →', 'move along the focused chart and read its values'],
  ['Esc', 'close a dialog'],
]

/** The button that lists the keys. */
export function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOff, setOff] = useState(areOff())
  const set = (event: Event) => {
    const isNowOff = !(event.currentTarget as HTMLInputElement).checked
    localStorage.setItem('keys', isNowOff ? 'off' : 'on')
    setOff(isNowOff)
  }
  return html`
    <button class="bare help" aria-label="Keyboard shortcuts" title="Keyboard shortcuts" onClick=${() => dialog.current?.showModal()}>?</button>
    <dialog ref=${dialog} aria-label="Keyboard shortcuts">
      <div class="stack">
        <h2>Keyboard shortcuts</h2>
        <dl class="facts">${rows.filter(([keys]) => !(isOwn() && areOperators(keys.slice(0, 1)))).map(([keys, what]) => html`<dt key=${keys}>${keys.split(/,? /).map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${what}</dd>`)}</dl>
        <label><input type="checkbox" checked=${!isOff} onChange=${set} />enable shortcuts</label>
        <div><button class="main" onClick=${() => dialog.current?.close()}>Done</button></div>
      </div>
    </dialog>
  `
}
