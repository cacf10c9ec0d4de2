import { parentPort, workerData } from 'node:worker_threads'
import { entitiesOf } from '@weir/policy/state/entities-of.ts'
import type { FromParser } from './file-parser.ts'

/** The main thread needs some milliseconds for this number of entities. */
const entitiesPerMessage = 1_000

const post = (message: FromParser) => parentPort?.postMessage(message)

const parsed = entitiesOf(String(workerData), 'weir.yaml')
if (parsed.kind === 'problems') post(parsed)
else {
  for (let at = 0; at < parsed.entities.length; at += entitiesPerMessage) {
    post({ kind: 'entities', entities: parsed.entities.slice(at, at + entitiesPerMessage) })
  }
  post({ kind: 'end' })
}
