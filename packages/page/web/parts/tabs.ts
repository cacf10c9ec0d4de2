import { useEffect, useRef } from 'preact/hooks'
import { html } from '../html.ts'
import { hrefOf, useLocation } from '../location.ts'

/** Pages that belong together, by their paths. */
export function Tabs({ of, label }: { readonly of: Readonly<Record<string, string>>; readonly label: string }) {
  const { path } = useLocation()
  return html`<nav class="tabs" aria-label=${label}>
    ${Object.entries(of).map(([one, name]) => html`<a key=${one} href=${hrefOf(one)} aria-current=${one === path ? 'page' : undefined}>${name}</a>`)}
  </nav>`
}

/** Parts of one page, by a parameter of the address: the first is the one without it. */
export function Parts(props: {
  readonly of: Readonly<Record<string, string>>
  readonly label: string
  readonly param: string
  /** Within a page that is one of several tabs. */
  readonly isSub?: boolean
}) {
  const { of, label, param, isSub = false } = props
  const { path, params } = useLocation()
  const names = Object.keys(of)
  const given = params.get(param) ?? ''
  const current = Object.hasOwn(of, given) ? given : names[0]
  const nav = useRef<HTMLElement>(null)
  // On narrow screens they are more than have room.
  useEffect(() => nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' }), [current])
  return html`<nav ref=${nav} class=${isSub ? 'tabs sub' : 'tabs'} aria-label=${label}>
    ${names.map((one, at) => html`<a key=${one} href=${hrefOf(path, at === 0 ? {} : { [param]: one })} aria-current=${one === current ? 'page' : undefined}>${of[one]}</a>`)}
  </nav>`
}
