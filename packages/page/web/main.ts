import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ask, send, signIn } from './api.ts'
import { html } from './html.ts'
import { AlertPage, AlertsPage } from './pages/alerts.ts'
import { BlocksPage } from './pages/blocks.ts'
import { KeysPage, TokensPage } from './pages/credentials.ts'
import { DecisionPage } from './pages/decision.ts'
import { DecisionsPage } from './pages/decisions.ts'
import { InvoicePage, InvoicesPage } from './pages/invoices.ts'
import { LivePage } from './pages/live.ts'
import { MePage } from './pages/me.ts'
import { Overview } from './pages/overview.ts'
import { ChangePage, ChangesPage, PolicyChangePage, PolicyPage } from './pages/policy.ts'
import { SignIn } from './pages/sign-in.ts'
import { SubjectPage, SubjectsPage } from './pages/subjects.ts'
import { SystemPage } from './pages/system.ts'
import { UsagePage } from './pages/usage.ts'
import { SpanTools } from './parts/span.ts'
import { followLinks, go, hrefOf, type Place, usePlace } from './place.ts'
import { type Session, setSession, useSession } from './session.ts'

/** The pages by path; `:id` is decoded. The first five stand in the bar of narrow screens. */
const pages: readonly (readonly [path: string, title: string, draw: (id: string) => unknown])[] = [
  ['/', 'Overview', () => html`<${Overview} />`],
  ['/live', 'Live', () => html`<${LivePage} />`],
  ['/usage', 'Usage', () => html`<${UsagePage} />`],
  ['/subjects', 'Subjects', () => html`<${SubjectsPage} />`],
  ['/decisions', 'Decisions', () => html`<${DecisionsPage} />`],
  ['/blocks', 'Blocks', () => html`<${BlocksPage} />`],
  ['/alerts', 'Alerts', () => html`<${AlertsPage} />`],
  ['/policy', 'Policy', () => html`<${PolicyPage} />`],
  ['/keys', 'Keys', () => html`<${KeysPage} />`],
  ['/tokens', 'Tokens', () => html`<${TokensPage} />`],
  ['/invoices', 'Invoices', () => html`<${InvoicesPage} />`],
  ['/system', 'System', () => html`<${SystemPage} />`],
  ['/subjects/:id', '', (id) => html`<${SubjectPage} id=${id} key=${id} />`],
  ['/decisions/:id', '', (id) => html`<${DecisionPage} id=${id} key=${id} />`],
  ['/alerts/:id', '', (id) => html`<${AlertPage} id=${id} key=${id} />`],
  ['/policy/change', '', () => html`<${PolicyChangePage} />`],
  ['/changes', '', () => html`<${ChangesPage} />`],
  ['/changes/:id', '', (id) => html`<${ChangePage} id=${id} key=${id} />`],
  ['/invoices/:id', '', (id) => html`<${InvoicePage} id=${id} key=${id} />`],
]
const inBar = 4

function pageOf({ path }: Place) {
  const exact = pages.find(([one]) => one === path)
  if (exact !== undefined) return { draw: exact[2], id: '', title: exact[1] }
  const at = path.lastIndexOf('/')
  const found = pages.find(([one]) => one === `${path.slice(0, at)}/:id`)
  const id = decodeURIComponent(path.slice(at + 1))
  return found === undefined ? undefined : { draw: found[2], id, title: id }
}

/** An id of a decision, also within a pasted answer. */
const decisionId = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/i
const addressLike = /^(?:\d{1,3}\.){3}\d{1,3}$|^[0-9a-f:]*:[0-9a-f:]*$/i

/** Leads to what is searched: a decision, an address or a subject. */
function find(text: string): void {
  const id = decisionId.exec(text)?.[0]
  if (id !== undefined) go(hrefOf(`/decisions/${id.toLowerCase()}`))
  else if (addressLike.test(text)) go(hrefOf('/decisions', { ip: text }))
  else go(hrefOf(`/subjects/${encodeURIComponent(text)}`))
}

const schemes = ['', 'light', 'dark']
const schemeNames: Readonly<Record<string, string>> = { '': 'as the system', light: 'light', dark: 'dark' }

function Scheme() {
  const [scheme, set] = useState(localStorage.getItem('scheme') ?? '')
  useEffect(() => {
    document.documentElement.dataset.scheme = scheme
    localStorage.setItem('scheme', scheme)
  }, [scheme])
  const next = schemes[(schemes.indexOf(scheme) + 1) % schemes.length] ?? ''
  return html`<button class="bare" title=${`Colours: ${schemeNames[scheme]}`} aria-label=${`Colours: ${schemeNames[scheme]}. Change`} onClick=${() => set(next)}>◐</button>`
}

function Search() {
  const submit = (event: Event) => {
    event.preventDefault()
    const text = String(new FormData(event.currentTarget as HTMLFormElement).get('text') ?? '').trim()
    if (text !== '') find(text)
  }
  return html`<form role="search" onSubmit=${submit}>
    <input type="search" name="text" aria-label="Find a subject, decision or address" placeholder="subject, decision, address" />
  </form>`
}

/** Keys that act anywhere but in fields; WCAG 2.1.4: `?` says them, and they can be switched off there. */
function useKeys() {
  useEffect(() => {
    let isGoing = false
    const targets: Readonly<Record<string, string>> = {
      o: '/',
      l: '/live',
      u: '/usage',
      s: '/subjects',
      d: '/decisions',
      a: '/alerts',
      p: '/policy',
    }
    const press = (event: KeyboardEvent) => {
      const inField =
        event.target instanceof Element && event.target.closest('input, textarea, select, dialog') !== null
      if (inField || event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem('keys') === 'off') return
      if (event.key === '/') {
        event.preventDefault()
        document.querySelector<HTMLInputElement>('input[type=search]')?.focus()
      } else if (isGoing && targets[event.key] !== undefined) go(hrefOf(targets[event.key] ?? '/'))
      isGoing = event.key === 'g'
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

function SignOut({ session }: { readonly session: Session }) {
  const out = () => send('DELETE', '/session').finally(() => setSession('nobody'))
  return html`<button class="bare small" title=${`Signed in as ${session.by}`} onClick=${out}>Sign out</button>`
}

function Frame({ session }: { readonly session: Session }) {
  const place = usePlace()
  const [isOpen, setOpen] = useState(false)
  useKeys()
  const isOwn = session.subjects !== null
  const page =
    isOwn && !place.path.startsWith('/invoices/') && !place.path.startsWith('/decisions/') ? undefined : pageOf(place)
  const title = isOwn ? 'Your use' : (page?.title ?? 'Weir')
  useEffect(() => {
    document.title = title === '' ? 'Weir' : `${title} · Weir`
    setOpen(false)
  }, [title, place.path])
  const links = pages.filter(([, name]) => name !== '')
  const isCurrent = (path: string) =>
    path === '/' ? place.path === '/' : place.path === path || place.path.startsWith(`${path}/`)
  const own = html`<${MePage} subjects=${session.subjects ?? []} />`
  const drawn = page === undefined ? (isOwn ? own : html`<h1>There is no such page</h1>`) : page.draw(page.id)
  return html`
    <a class="skip" href="#content">To the content</a>
    <header class="top">
      <a class="brand" href=${hrefOf(isOwn ? '/me' : '/')}>Weir</a>
      ${
        !isOwn &&
        html`<nav class=${`pages ${isOpen ? 'open' : ''}`} aria-label="Pages">
          ${links.map(([path, name], at) => html`<a key=${path} class=${at < inBar ? '' : 'later'} href=${hrefOf(path)} aria-current=${isCurrent(path) ? 'page' : undefined}>${name}</a>`)}
          <button class="more-pages" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>More</button>
        </nav>`
      }
      <div class="tools">
        ${!isOwn && html`<${Search} />`}
        <${SpanTools} />
        <${Scheme} />
        <${SignOut} session=${session} />
      </div>
    </header>
    <main id="content" tabindex="-1">${drawn}</main>
  `
}

function App() {
  const session = useSession()
  useEffect(() => {
    // A portal's link has its token behind the #, which goes to no server and into no log.
    const portal = location.hash.startsWith('#weir_portal_') ? location.hash.slice(1) : undefined
    if (portal !== undefined) history.replaceState(undefined, '', location.pathname + location.search)
    const begun =
      portal === undefined
        ? ask<Session | Record<string, never>>('/session').then((one) =>
            setSession('by' in one ? (one as Session) : 'nobody'),
          )
        : signIn(portal)
    begun.catch(() => setSession('nobody'))
  }, [])
  if (session === 'unknown') return null
  return session === 'nobody' ? html`<${SignIn} />` : html`<${Frame} session=${session} />`
}

followLinks()
const root = document.getElementById('page')
if (root !== null) render(html`<${App} />`, root)
