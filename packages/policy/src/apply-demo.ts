import { type Document, isMap, isScalar, isSeq, parseDocument } from 'yaml'

/** The subjects that the shipped policy has for trying things out. */
const demoSubjects = ['demo', 'demo-small'] as const
/** The id of a demo subject. */
export type DemoSubject = (typeof demoSubjects)[number]

/** What weir.yaml says where `weir up` has its demo API and its demo receiver; replaced by where they really are. */
const demoUpstreamPlaceholder = 'http://127.0.0.1:8070'
const demoEndpointPlaceholder = 'http://127.0.0.1:8071/'

/** The keys and addresses of the demo that runs. */
export interface DemoFacts {
  /** SHA-256 in hex of the key made for `demo`. */
  readonly demoKeySha256: string
  readonly demoSmallKeySha256: string
  /** Origin of the demo API. */
  readonly upstreamUrl: string
  readonly receiverUrl: string
}

/** A policy with the demo in it. */
export interface AppliedDemo {
  readonly text: string
  /** Those the policy has: only they got a key. */
  readonly subjects: readonly DemoSubject[]
}

/**
 * The policy that `weir up` hands to its services: as people wrote it, with the demo keys in addition to its own,
 * the demo addresses in place of the shipped placeholders, and the demo API as the upstream if there is none at all.
 * Anything else stays. For a text that `parsePolicy` has accepted; one it would refuse comes back unchanged or is
 * refused still.
 */
export function applyDemo(text: string, facts: DemoFacts): AppliedDemo {
  const document = parseDocument(text, { stringKeys: true, logLevel: 'error' })
  if (document.errors.length > 0 || !isMap(document.contents)) return { text, subjects: [] }
  const hashes = { demo: facts.demoKeySha256, 'demo-small': facts.demoSmallKeySha256 }
  const subjects = demoSubjects.filter((id) => addKey(document, id, hashes[id]))
  const upstreams = document.getIn(['upstreams'])
  if (!isMap(upstreams) || upstreams.items.length === 0) {
    document.setIn(['upstreams'], document.createNode({ demo: { url: facts.upstreamUrl, hosts: ['*'] } }))
  }
  replaceUrl(document, 'upstreams', demoUpstreamPlaceholder, facts.upstreamUrl)
  replaceUrl(document, 'endpoints', demoEndpointPlaceholder, facts.receiverUrl)
  // Lines are never folded: a folded URL would still be right, but unreadable.
  return { text: document.toString({ lineWidth: 0 }), subjects }
}

function addKey(document: Document.Parsed, id: DemoSubject, sha256: string): boolean {
  if (!isMap(document.getIn(['subjects', id]))) return false
  const keys = document.getIn(['subjects', id, 'keys'])
  const key = document.createNode({ sha256 })
  if (!isSeq(keys)) document.setIn(['subjects', id, 'keys'], document.createNode([key]))
  else if (!keys.items.some((item) => isMap(item) && item.get('sha256') === sha256)) keys.items.push(key)
  return true
}

/** Only the placeholder is replaced: an address that someone wrote is meant. */
function replaceUrl(document: Document.Parsed, section: string, placeholder: string, url: string): void {
  const path = [section, 'demo', 'url']
  const found = document.getIn(path, true)
  if (isScalar(found) && String(found.value).replace(/\/$/, '') === placeholder.replace(/\/$/, '')) found.value = url
}
