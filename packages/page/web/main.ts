import './language.ts'
import { render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ask, send, signIn } from './api.ts'
import { html } from './html.ts'
import { followLinks, hrefOf, type PageLocation, replace, useLocation } from './location.ts'
import { AlertPage } from './pages/alert.ts'
import { AlertsPage } from './pages/alerts.ts'
import { BlocksPage } from './pages/blocks.ts'
import { ChangePage, ChangesPage } from './pages/changes.ts'
import { DecisionPage } from './pages/decision.ts'
import { DecisionsPage } from './pages/decisions.ts'
import { EndpointsPage } from './pages/endpoints.ts'
import { KeysPage } from './pages/keys.ts'
import { LivePage } from './pages/live.ts'
import { MePage } from './pages/me.ts'
import { Overview } from './pages/overview.ts'
import { PolicyPage } from './pages/policy.ts'
import { PolicyChangePage } from './pages/policy-change.ts'
import { PricesPage } from './pages/prices.ts'
import { SearchPage } from './pages/search.ts'
import { SignIn } from './pages/sign-in.ts'
import { SpendPage } from './pages/spend.ts'
import { SubjectPage } from './pages/subject.ts'
import { SubjectsPage } from './pages/subjects.ts'
import { SystemPage } from './pages/system.ts'
import { TokensPage } from './pages/tokens.ts'
import { UsagePage } from './pages/usage.ts'
import { Help, useKeys } from './parts/keys.ts'
import { Search } from './parts/search.ts'
import { SpanTools } from './parts/span.ts'
import { type PagePath, paths } from './paths.ts'
import { type Session, setSession, useSession } from './session.ts'

/** Where links of releases before 0.11 lead. */
const gone = () => html`<h1>No invoices</h1>
  <p>Weir does not issue invoices. <a href=${hrefOf('/prices')}>Prices</a> show what usage costs, and <code>weir usage export</code> exports the usage to invoice.</p>`

interface Page {
  /** `:id` of the path is decoded. */
  readonly draw: (id: string) => unknown
  /** Its name in the navigation, where it has one: in this order, the first four also in the bar of narrow screens. */
  readonly name?: string
  /** The page whose entry it belongs to. */
  readonly of?: PagePath
}

const pages: Readonly<Record<PagePath, Page>> = {
  '/': { name: 'Overview', draw: () => html`<${Overview} />` },
  '/live': { name: 'Live', draw: () => html`<${LivePage} />` },
  '/usage': { name: 'Usage', draw: () => html`<${UsagePage} />` },
  '/subjects': { name: 'Subjects', draw: () => html`<${SubjectsPage} />` },
  '/subjects/:id': { draw: (id) => html`<${SubjectPage} id=${id} key=${id} />` },
  '/decisions': { name: 'Decisions', draw: () => html`<${DecisionsPage} />` },
  '/decisions/:id': { draw: (id) => html`<${DecisionPage} id=${id} key=${id} />` },
  '/blocks': { name: 'Blocks', draw: () => html`<${BlocksPage} />` },
  '/alerts': { name: 'Alerts', draw: () => html`<${AlertsPage} />` },
  '/alerts/:id': { draw: (id) => html`<${AlertPage} id=${id} key=${id} />` },
  '/endpoints': { of: '/alerts', draw: () => html`<${EndpointsPage} />` },
  '/policy': { name: 'Policy', draw: () => html`<${PolicyPage} />` },
  '/policy/change': { draw: () => html`<${PolicyChangePage} />` },
  '/changes': { of: '/policy', draw: () => html`<${ChangesPage} />` },
  '/changes/:id': { draw: (id) => html`<${ChangePage} id=${id} key=${id} />` },
  '/keys': { name: 'Keys', draw: () => html`<${KeysPage} />` },
  '/tokens': { of: '/keys', draw: () => html`<${TokensPage} />` },
  '/spend': { name: 'Spend', draw: () => html`<${SpendPage} />` },
  '/prices': { of: '/spend', draw: () => html`<${PricesPage} />` },
  '/invoices': { of: '/spend', draw: gone },
  '/invoices/:id': { draw: gone },
  '/search': { draw: () => html`<${SearchPage} />` },
  '/system': { name: 'System', draw: () => html`<${SystemPage} />` },
  '/me': {
    draw: () =>
      html`<h1>This page is for customers</h1><p>Open it with a portal link or a key with <code>selfService</code>.</p>`,
  },
}

/** The navigation: a page's path and name, and the paths that belong to it. */
const entries = paths.flatMap((path) => {
  const { name } = pages[path]
  return name === undefined ? [] : [{ path, name, within: [path, ...paths.filter((one) => pages[one].of === path)] }]
})
const inBar = 4

function pageOf({ path }: PageLocation) {
  const exact = paths.find((one) => one === path)
  if (exact !== undefined) return { draw: pages[exact].draw, id: '' }
  const at = path.lastIndexOf('/')
  const found = paths.find((one) => one === `${path.slice(0, at)}/:id`)
  return found === undefined ? undefined : { draw: pages[found].draw, id: decodeURIComponent(path.slice(at + 1)) }
}

const schemeNames: Readonly<Record<string, string>> = { '': 'system', light: 'light', dark: 'dark' }

function Scheme() {
  const [scheme, set] = useState(localStorage.getItem('scheme') ?? '')
  useEffect(() => {
    document.documentElement.dataset.scheme = scheme
    localStorage.setItem('scheme', scheme)
  }, [scheme])
  const schemes = Object.keys(schemeNames)
  const next = schemes[(schemes.indexOf(scheme) + 1) % schemes.length] ?? ''
  return html`<button class="bare" title=${`Colours: ${schemeNames[scheme]}`} aria-label=${`Colours: ${schemeNames[scheme]}. Change`} onClick=${() => set(next)}>◐</button>`
}

function SignOut({ session, kind }: { readonly session: Session; readonly kind: string }) {
  const out = () => send('DELETE', '/session').finally(() => setSession('nobody'))
  return html`<button class=${`bare ${kind}`} title=${`Signed in as ${session.by}`} onClick=${out}>Sign out</button>`
}

const isWithin = (here: string, path: string) =>
  path === '/' ? here === '/' : here === path || here.startsWith(`${path}/`)

function Navigation({ here, session }: { readonly here: PageLocation; readonly session: Session }) {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => setOpen(false), [here.path])
  const isCurrent = ({ within }: (typeof entries)[number]) => within.some((one) => isWithin(here.path, one))
  return html`<nav class=${`pages ${isOpen ? 'open' : ''}`} aria-label="Pages">
    ${entries.map((entry, at) => html`<a key=${entry.path} class=${at < inBar ? '' : 'later'} href=${hrefOf(entry.path)} aria-current=${isCurrent(entry) ? 'page' : undefined}>${entry.name}</a>`)}
    <${SignOut} session=${session} kind="later narrow" />
    <button class=${`more-pages ${entries.slice(inBar).some(isCurrent) ? 'current' : ''}`} aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>More</button>
  </nav>`
}

/** The title of a page is its heading's. */
function useTitle(here: PageLocation, site: string): void {
  useEffect(() => {
    const name = document.querySelector('h1')?.textContent ?? ''
    document.title = name === '' || name === site ? site : `${name} · ${site}`
  }, [here.path, site])
}

function Frame({ session }: { readonly session: Session }) {
  const here = useLocation()
  const isOwn = session.subjects !== null
  const { vendor } = session
  const name = isOwn && vendor.name !== '' ? vendor.name : 'Weir'
  useKeys()
  useTitle(here, name)
  // Never the colour of a text: nobody has looked at its contrast.
  useEffect(() => document.documentElement.style.setProperty('--vendor', isOwn ? vendor.color : ''), [isOwn])
  const page = isOwn && !here.path.startsWith('/decisions/') ? undefined : pageOf(here)
  // What a customer sees has one address, whatever was opened.
  useEffect(() => {
    if (isOwn && page === undefined && here.path !== '/me') replace(hrefOf('/me'))
  }, [isOwn, page === undefined, here.path])
  const own = html`<${MePage} subjects=${session.subjects ?? []} />`
  const drawn = page === undefined ? (isOwn ? own : html`<h1>Page not found</h1>`) : page.draw(page.id)
  return html`
    <a class="skip" href="#content">Skip to content</a>
    <header class="top">
      <a class="brand" href=${hrefOf(isOwn ? '/me' : '/')}>${(!isOwn || vendor.name === '') && html`<svg viewBox="0 0 32 32" aria-hidden="true"><path d="M3 11c5-5 7.5 5 13 0s8 5 13 0M3 21c5-5 7.5 5 13 0s8 5 13 0" /></svg>`}${name}</a>
      ${!isOwn && html`<${Navigation} here=${here} session=${session} />`}
      ${!isOwn && html`<${Search} />`}
      <div class="tools">
        <${SpanTools} />
        <${Scheme} />
        <${Help} />
        <${SignOut} session=${session} kind=${isOwn ? 'small' : 'small wide-only'} />
      </div>
    </header>
    <main id="content" tabindex="-1">${drawn}</main>
  `
}

/** Asks for a token over the page, which then goes on. */
function SignInAgain() {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return html`<dialog ref=${dialog} aria-label="Sign in again" onCancel=${(event: Event) => event.preventDefault()}><${SignIn} isAgain /></dialog>`
}

function App() {
  const session = useSession()
  useEffect(() => {
    // A portal's link has its token behind the #, which goes to no server and into no log.
    const portal = location.hash.startsWith('#weir_portal_') ? location.hash.slice(1) : undefined
    if (portal !== undefined) history.replaceState(undefined, '', location.pathname + location.search)
    ask<Session | Record<string, never>>('/session')
      .catch(() => ({}))
      .then((one) => {
        const open = 'by' in one ? (one as Session) : undefined
        // Any page can lead here: its link must not end somebody's session, nor begin one where none is expected.
        const isAsked = portal !== undefined && (open !== undefined || location.pathname !== '/me')
        const question = `Sign in with this link${open === undefined ? '' : ` instead of as ${open.by}`}?`
        if (portal !== undefined && (!isAsked || confirm(question))) return signIn(portal)
        setSession(open ?? 'nobody')
      })
      .catch(() => setSession('nobody'))
  }, [])
  if (session === 'unknown') return null
  if (session === 'nobody') return html`<main><${SignIn} /></main>`
  return html`<${Frame} session=${session} />${session.isOver === true && html`<${SignInAgain} />`}`
}

followLinks()
const root = document.getElementById('page')
if (root !== null) render(html`<${App} />`, root)
