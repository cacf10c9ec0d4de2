import { freePorts } from '@weir/runtime/ports.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { Stack } from './stack.ts'

const deadlineMs = 30_000

/** One message of the inspector's protocol. */
interface InspectorMessage {
  readonly method?: string
  readonly params?: { readonly sessionId?: string; readonly workerInfo?: { readonly url: string } }
}

/** Where the ingress process can be looked into; it is started again for that. */
export async function openInspector(stack: Stack): Promise<number> {
  const [port = 0] = await freePorts(1)
  const before = stack.pid('ingress')
  stack.killInto('ingress', [{ NODE_OPTIONS: `--inspect=127.0.0.1:${port}` }])
  await stack.backAfter('ingress', before)
  return port
}

/**
 * Ends every thread of the process but the first, as a crash in it would: no service has a switch for that, so it is
 * done from outside, by Node's inspector. Resolves with what the threads ran.
 */
export async function endThreads(port: number): Promise<string[]> {
  const targets = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()
  const socket = new WebSocket((targets as { webSocketDebuggerUrl: string }[])[0]?.webSocketDebuggerUrl ?? '')
  const ended: string[] = []
  const send = (method: string, params: object) => socket.send(JSON.stringify({ id: 1, method, params }))
  socket.addEventListener('open', () => send('NodeWorker.enable', { waitForDebuggerOnStart: false }))
  socket.addEventListener('message', ({ data }) => {
    const { method, params }: InspectorMessage = JSON.parse(String(data))
    if (method !== 'NodeWorker.attachedToWorker') return
    const message = JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression: 'process.exit(1)' } })
    send('NodeWorker.sendMessageToWorker', { sessionId: params?.sessionId, message })
    ended.push(params?.workerInfo?.url ?? '')
  })
  try {
    if ((await waitUntil(() => ended.length > 0, { deadlineMs })) !== true)
      throw new Error('the process has no threads')
    return ended
  } finally {
    socket.close()
  }
}
