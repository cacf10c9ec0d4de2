import type { ChangeLineV1 } from '@weir/contracts/policy.v1.ts'
import { encodeEntityChange } from '@weir/contracts/policy.v1.ts'
import type { Steps } from '@weir/core/steps.ts'
import { type EntityChange, type EntityKind, entityKinds } from '@weir/policy/entities.ts'

/** Entities of one batch: some hundred milliseconds of work for each process that takes it over. */
const entitiesMax = 5_000
/** A quarter of what the topic takes as one batch, because Kafka counts its own framing too. */
const charactersMax = 4 * 1024 * 1024

/** The changes of one batch, and what its audit record says. */
export interface PartOfChange {
  readonly changes: readonly EntityChange[]
  readonly lines: readonly ChangeLineV1[]
}

/** What others refer to comes before them, and goes after them. */
function inOrder(changes: readonly EntityChange[]): EntityChange[] {
  const puts = Map.groupBy(changes, ({ kind, entity }) => (entity === undefined ? undefined : kind))
  const deletions = Map.groupBy(puts.get(undefined) ?? [], ({ kind }) => kind)
  const of = (groups: typeof puts) => (kind: EntityKind) => groups.get(kind) ?? []
  return [...entityKinds.flatMap(of(puts)), ...entityKinds.toReversed().flatMap(of(deletions))]
}

/**
 * A change as the batches it is published in: one, unless it is larger than a batch may be. Of several, each is whole
 * by itself, definitions first and deletions last; all say of themselves what the whole does, but only the last one
 * that a file is applied: a stop between them must not leave it as done. A change at a step.
 */
export function* splitChanges(
  changes: readonly EntityChange[],
  lines: readonly ChangeLineV1[],
): Steps<readonly PartOfChange[]> {
  const parts: EntityChange[][] = [[]]
  let characters = 0
  for (const change of inOrder(changes)) {
    yield
    const { key, value } = encodeEntityChange(change)
    const more = key.length + (value?.length ?? 0)
    const part = parts.at(-1) ?? []
    if (part.length >= entitiesMax || (part.length > 0 && characters + more > charactersMax)) {
      parts.push([change])
      characters = more
    } else {
      part.push(change)
      characters += more
    }
  }
  const ofParts = lines.filter(({ kind }) => kind !== 'policy')
  return parts.map((part, at) => ({ changes: part, lines: at === parts.length - 1 ? lines : ofParts }))
}
