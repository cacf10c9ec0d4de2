import type { Steps } from '@weir/core/steps.ts'
import { canonicalJson, deleteEntity, type Entity, type EntityChange, entityKinds, putEntity } from '../entities.ts'
import type { PolicyState } from './policy-state.ts'

/**
 * What makes the state hold a file: the file's entities that are missing or differ, and the deletion of those that came
 * from a file and are not in this one. What the admin API has made stays, unless the file has it too: then it is the
 * file's. With `isWhole` the file is all there is: what is not in it is deleted. Entities whose order is as it was keep
 * their positions, so that a line put in is one change. One at a step.
 */
export function* diffSteps(
  state: PolicyState,
  fileEntities: readonly Entity[],
  isWhole = false,
): Steps<readonly EntityChange[]> {
  const changes: EntityChange[] = []
  const byKind = Map.groupBy(fileEntities, ({ kind }) => kind)
  const names = new Map(entityKinds.map((kind) => [kind, new Set<string>()]))
  for (const kind of entityKinds) {
    for (const entity of placed(state, byKind.get(kind) ?? [])) {
      yield
      names.get(kind)?.add(entity.name)
      if (!isSame(state.get(kind, entity.name), entity)) changes.push(putEntity(entity))
    }
  }
  for (const kind of entityKinds.toReversed()) {
    for (const { name, origin } of state.list(kind)) {
      yield
      if ((isWhole || origin === 'file') && names.get(kind)?.has(name) === false) changes.push(deleteEntity(kind, name))
    }
  }
  return changes
}

function isSame(known: Entity | undefined, entity: Entity): boolean {
  if (known === undefined || known.origin !== entity.origin || known.position !== entity.position) return false
  return canonicalJson(known.body) === canonicalJson(entity.body)
}

/** The entities of one kind with the positions they have in the state; new ones get one between their neighbours'. */
function placed(state: PolicyState, entities: readonly Entity[]): readonly Entity[] {
  if (entities.every(({ position }) => position === undefined)) return entities
  const known = entities.map(({ kind, name, position }) => {
    return position === undefined ? undefined : state.get(kind, name)?.position
  })
  const positions = between(known)
  if (positions === undefined) return entities
  return entities.map((entity, at) => (entity.position === undefined ? entity : { ...entity, position: positions[at] }))
}

/**
 * Fills the gaps so that all ascend; undefined when the known ones do not, or a gap is too narrow for another number.
 */
function between(known: readonly (number | undefined)[]): readonly number[] | undefined {
  const uppers: (number | undefined)[] = []
  let upper: number | undefined
  for (const position of known.toReversed()) {
    uppers.push(upper)
    upper = position ?? upper
  }
  const positions: number[] = []
  for (const [at, position] of known.entries()) {
    const [last, next] = [positions.at(-1), uppers[known.length - 1 - at]]
    const found = position ?? gapBetween(last, next)
    if (last !== undefined && found <= last) return undefined
    if (next !== undefined && found >= next) return undefined
    positions.push(found)
  }
  return positions
}

function gapBetween(lower: number | undefined, upper: number | undefined): number {
  if (upper === undefined) return lower === undefined ? 0 : Math.floor(lower) + 1
  return lower === undefined ? Math.ceil(upper) - 1 : (lower + upper) / 2
}
