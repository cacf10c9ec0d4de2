import { useEffect, useState } from 'preact/hooks'

/** Where the reader is: all that a link must carry for another to see the same. */
export interface PageLocation {
  readonly path: string
  readonly params: URLSearchParams
}

/** What goes along from page to page. */
const kept = ['span', 'from', 'to', 'zone']

const read = (): PageLocation => ({ path: location.pathname, params: new URLSearchParams(location.search) })
const listeners = new Set<() => void>()
const tell = () => {
  for (const listener of listeners) listener()
}
addEventListener('popstate', tell)

/** The location now; the caller is drawn again when it changes. */
export function useLocation(): PageLocation {
  const [now, setNow] = useState(read)
  useEffect(() => {
    const listener = () => setNow(read())
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
    }
  }, [])
  return now
}

export const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** The zone that is chosen. A new one draws the whole page again: who writes a time need not listen to it. */
export const zoneNow = (): string => new URLSearchParams(location.search).get('zone') ?? browserZone

/** The address of a page, with the zone that is chosen here, and the span unless another is named. */
export function hrefOf(path: string, params: Readonly<Record<string, string>> = {}): string {
  const here = new URLSearchParams(location.search)
  const all = new URLSearchParams()
  for (const name of (params.span ?? '') === '' ? kept : ['zone']) {
    const value = here.get(name)
    if (value !== null) all.set(name, value)
  }
  for (const [name, value] of Object.entries(params)) if (value !== '') all.set(name, value)
  return all.size === 0 ? path : `${path}?${all}`
}

/** Goes to an address of this console. */
export function go(href: string): void {
  history.pushState(undefined, '', href)
  scrollTo(0, 0)
  tell()
}

/** Goes on at another address of the page; Back leads to where the reader was before. */
export function replace(href: string): void {
  history.replaceState(undefined, '', href)
  tell()
}

/** Changes parameters of the location; undefined or empty takes one away. Back leads here again if it is a `step`. */
export function setParams(changes: Readonly<Record<string, string | undefined>>, isStep = false): void {
  const url = new URL(location.href)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') url.searchParams.delete(name)
    else url.searchParams.set(name, value)
  }
  if (isStep) history.pushState(undefined, '', url)
  else history.replaceState(undefined, '', url)
  tell()
}

/** Follows links within the console without loading the page again. */
export function followLinks(): void {
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.origin !== location.origin || link.target !== '' || link.hasAttribute('download')) return
    if (link.pathname.startsWith('/v1/')) return
    event.preventDefault()
    go(link.pathname + link.search)
  })
}
