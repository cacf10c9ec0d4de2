import type { ClientBody } from './client-body.ts'

/** How often upload rates are checked: short pauses of a client even out in the meantime. */
const checkEveryMs = 10_000

interface Upload {
  readonly tooSlow: () => void
  /** Bytes received at the last check; -1 before the first one. */
  bytes: number
}

/**
 * Watches the rate of bodies that are still on their way. All share one timer, which runs only while there are any: a
 * body that came whole with its request costs nothing. There are as many as requests with a connection to an upstream.
 */
export function createUploadWatch(bytesPerSecondMin: number, everyMs: number = checkEveryMs) {
  const uploads = new Map<ClientBody, Upload>()
  const bytesMin = (bytesPerSecondMin * everyMs) / 1_000
  let timer: NodeJS.Timeout | undefined

  const check = () => {
    for (const [body, upload] of uploads) {
      const isSlow = upload.bytes >= 0 && body.bytes - upload.bytes < bytesMin
      upload.bytes = body.bytes
      if (body.wasHeldBack() || !isSlow || body.hasAllCome) continue
      uploads.delete(body)
      upload.tooSlow()
    }
    if (uploads.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    /**
     * Calls `tooSlow` once, should less than the least rate come between two checks although the upstream would take
     * more.
     */
    add(body: ClientBody, tooSlow: () => void): void {
      if (bytesPerSecondMin === 0 || body.hasAllCome) return
      uploads.set(body, { tooSlow, bytes: -1 })
      timer ??= setInterval(check, everyMs).unref()
    },
    remove: (body: ClientBody): void => void uploads.delete(body),
  }
}
