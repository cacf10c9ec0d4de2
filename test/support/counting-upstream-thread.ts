import { once } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { startCountingUpstream } from './counting-upstream.ts'

/** What its thread says: where it listens, then the most that there were, as often as it is asked. */
type Said = { readonly url: string } | { readonly most: ReadonlyMap<string, number> }

const role = 'counting upstream'

/** A counting upstream with a thread of its own: however busy the test is, it counts what ends when it ends. */
export async function startCountingThread() {
  const worker = new Worker(new URL(import.meta.url), { workerData: role })
  const [{ url }] = (await once(worker, 'message')) as [Extract<Said, { url: string }>]
  return {
    url,
    async most() {
      worker.postMessage('most')
      const [{ most }] = (await once(worker, 'message')) as [Extract<Said, { most: unknown }>]
      return most
    },
    /** Breaks off whatever it is answering. */
    cut: () => worker.postMessage('cut'),
    close: async () => void (await worker.terminate()),
  }
}

if (workerData === role) {
  const upstream = await startCountingUpstream()
  const say = (said: Said) => parentPort?.postMessage(said)
  parentPort?.on('message', (asked) => (asked === 'cut' ? upstream.cut() : say({ most: upstream.most })))
  say({ url: upstream.url })
}
