import type { ClientBody } from './client-body.ts'

/** How often uploads are looked at: short pauses of a client even out in the meantime. */
const lookEveryMs = 10_000

/** Looks after bodies that are still on their way. */
export interface UploadWatch {
  /** Calls `tooSlow` once, should less than the least rate come between two looks although the upstream would take more. */
  add(body: ClientBody, tooSlow: () => void): void
  remove(body: ClientBody): void
}

interface Upload {
  readonly tooSlow: () => void
  /** What had come when it was looked at last; -1 before the first look. */
  bytes: number
}

/**
 * One timer for all uploads, which runs only while there are any: nothing happens for a body that came whole with its request. As
 * many as requests have a connection to an upstream.
 */
export function createUploadWatch(bytesPerSecondMin: number, everyMs: number = lookEveryMs): UploadWatch {
  const uploads = new Map<ClientBody, Upload>()
  const bytesMin = (bytesPerSecondMin * everyMs) / 1_000
  let timer: NodeJS.Timeout | undefined

  const look = () => {
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
    add(body, tooSlow) {
      if (bytesPerSecondMin === 0 || body.hasAllCome) return
      uploads.set(body, { tooSlow, bytes: -1 })
      timer ??= setInterval(look, everyMs).unref()
    },
    remove: (body) => void uploads.delete(body),
  }
}
