import type { Applied } from '@weir/api/policy.ts'
import type { ChangeLineV1 } from '@weir/contracts/policy.v1.ts'
import type { Steps } from '@weir/core/steps.ts'
import {
  canonicalJson,
  deleteEntity,
  type Entity,
  type EntityChange,
  type JsonObject,
  putEntity,
} from '@weir/policy/entities.ts'
import { diffSteps } from '@weir/policy/state/diff-file.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { fileLine } from './audit-log.ts'
import { keyFacts } from './key-changes.ts'

/** One thing that applying a file does, or would do. Nothing secret: no hashes. */
export type FileChange = Applied['changes'][number]

function shown(entity: Entity | undefined): JsonObject | null {
  if (entity === undefined) return null
  const { sha256: _, ...body } = entity.body
  return body
}

const shownName = (entity: Entity | undefined, { kind, name }: EntityChange) =>
  kind === 'key' && entity !== undefined ? keyFacts(entity).id : name

/** What the admin API has ended stays so: a file from before must not bring it back. */
const endedKinds: readonly string[] = [
  'key',
  'portal',
  'silence',
  'block',
  'unsubscribed',
  'ownAlerts',
] satisfies readonly Entity['kind'][]
const isKept = (before: Entity | undefined) =>
  before !== undefined && endedKinds.includes(before.kind) && before.origin === 'admin'

/** The changes of an applied file, for the policy, the audit and the caller. */
export interface AppliedFile {
  readonly changes: readonly EntityChange[]
  readonly lines: readonly ChangeLineV1[]
  readonly shown: readonly FileChange[]
}

/**
 * A deleted subject takes what its customer has chosen, and all of its keys along; a key that the file has under
 * another subject moves there unchanged.
 */
function withKeysOfGone(state: PolicyState, diff: readonly EntityChange[]): readonly EntityChange[] {
  const keys = new Map(diff.filter(({ kind }) => kind === 'key').map((change) => [change.name, change]))
  const ofGone = new Map<string, EntityChange>()
  const own: EntityChange[] = []
  for (const { kind, name, entity } of diff) {
    if (kind !== 'subject' || entity !== undefined) continue
    if (state.get('ownAlerts', name) !== undefined) own.push(deleteEntity('ownAlerts', name))
    for (const sha256 of state.keysOf(name)) {
      const [key, next] = [state.get('key', sha256), keys.get(sha256)?.entity]
      const subject = next?.body.subject
      const moved = key === undefined || subject === undefined ? undefined : { ...key, body: { ...key.body, subject } }
      if (moved === undefined) ofGone.set(sha256, deleteEntity('key', sha256))
      else if (isKept(key)) ofGone.set(sha256, putEntity(moved))
    }
  }
  if (ofGone.size + own.length === 0) return diff
  const isPlanned = ({ kind, name }: EntityChange) => kind === 'ownAlerts' && own.some((one) => one.name === name)
  const rest = diff.filter((one) => !(one.kind === 'key' && ofGone.has(one.name)) && !isPlanned(one))
  return [...rest, ...ofGone.values(), ...own]
}

/** Each stays whose it is; a new one is the admin API's. */
const withOrigins = (state: PolicyState, entities: readonly Entity[]): readonly Entity[] =>
  entities.map((entity) => ({ ...entity, origin: state.get(entity.kind, entity.name)?.origin ?? 'admin' }))

/**
 * Plans the changes that make the policy what the file says. Entities of the admin API stay, and so do its changes of
 * keys while their subject exists. Without a revision it is no file but an edit of the whole policy: each entity stays
 * whose it is, those that the text lacks are deleted, and the file applied last stays the last. Each step handles one
 * entity.
 */
export function* planFile(
  state: PolicyState,
  entities: readonly Entity[],
  revision: string | undefined,
): Steps<AppliedFile> {
  const changes: EntityChange[] = []
  const all: FileChange[] = []
  const isEdit = revision === undefined
  const wanted = isEdit ? withOrigins(state, entities) : entities
  for (const change of withKeysOfGone(state, yield* diffSteps(state, wanted, isEdit))) {
    yield
    const { kind, name, entity } = change
    const before = state.get(kind, name)
    const kept = isKept(before) && entity?.origin === 'file'
    const isSame =
      before !== undefined && entity !== undefined && canonicalJson(before.body) === canonicalJson(entity.body)
    if (!kept) changes.push(change)
    if (isSame) continue
    const action = kept ? 'keep' : entity === undefined ? 'delete' : before === undefined ? 'create' : 'update'
    all.push({ action, kind, name: shownName(before ?? entity, change), before: shown(before), after: shown(entity) })
  }
  const lines = all
    .filter(({ action }) => action !== 'keep')
    .map(({ action, kind, name }) => ({ what: action === 'delete' ? 'delete' : 'put', kind, name }) as const)
  return { changes, lines: isEdit ? lines : [fileLine(revision), ...lines], shown: all }
}
