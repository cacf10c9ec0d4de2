import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Entity } from '@weir/policy/entities.ts'
import { entitiesOf, type ParsedEntities } from '@weir/policy/state/entities-of.ts'

/** The messages of a parser thread: several `entities`, and `end` or `problems` last. */
export type FromParser = ParsedEntities | { readonly kind: 'end' }

/** A parsed policy file, or why it could not be read. */
export type ParsedFile = ParsedEntities | { readonly kind: 'unavailable'; readonly why: string }

/** Characters that are read within some 100 ms; a thread takes as long to start. */
const shortMax = 64_000
/** Files that wait or are read: each has up to 16 MB, and hundreds of MB while it is read. */
const filesMax = 4
/** The longest file takes half of it on a slow machine; the caller has given up by then. */
const deadlineMs = 60_000

const program = fileURLToPath(new URL('./parser-thread.ts', import.meta.url))

/** Reads large policy files on a thread: 16 MB take ten seconds and more, and a wrong file longer than a right one. */
export class FileParser {
  #files = 0
  #last: Promise<unknown> = Promise.resolve()

  /** Parses as `entitiesOf` does, one file at a time; a file beyond the capacity or the deadline is `unavailable`. */
  async parse(text: string): Promise<ParsedFile> {
    if (text.length <= shortMax) return entitiesOf(text, 'weir.yaml')
    if (this.#files >= filesMax) return { kind: 'unavailable', why: `${filesMax} policy files are already being read.` }
    this.#files += 1
    const mine = this.#last.then(() => parseOnThread(text))
    this.#last = mine
    try {
      return await mine
    } finally {
      this.#files -= 1
    }
  }
}

/** A thread for one file: its memory ends with it. */
async function parseOnThread(text: string): Promise<ParsedFile> {
  const { promise, resolve } = Promise.withResolvers<ParsedFile>()
  const thread = new Worker(program, { workerData: text, name: 'policy-file' })
  const entities: Entity[] = []
  const fail = (why: string) => resolve({ kind: 'unavailable', why: `The policy file could not be read: ${why}.` })
  const timer = setTimeout(() => {
    fail(`it took more than ${deadlineMs / 1_000} s`)
    void thread.terminate()
  }, deadlineMs)
  thread.on('message', (message: FromParser) => {
    if (message.kind === 'problems') resolve(message)
    else if (message.kind === 'end') resolve({ kind: 'entities', entities })
    else for (const entity of message.entities) entities.push(entity)
  })
  thread.on('error', (error) => fail(error instanceof Error ? error.message : String(error)))
  thread.on('exit', (code) => fail(`its thread ended with ${code}`))
  try {
    return await promise
  } finally {
    // It ends by itself after its last message: to be ended in the middle of that has crashed Node 24.
    clearTimeout(timer)
  }
}
