import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** Both halves of the space for new objects: as small as it can be without costing processor time. */
const newSpaceBytes = 4 * 1_024 * 1_024
const lookEveryMs = 50

/**
 * Keeps what is garbage from piling up: without it V8 lets the heap of a process whose live part is 80 MB grow to 600
 * before it collects, on a machine with memory to spare. To be called first. The size of the new space can be bounded
 * by a flag only where Node is started; here its growth is stopped in time.
 */
export function keepHeapSmall(): void {
  // Old objects are collected when they have grown by so much since the last time.
  setFlagsFromString('--heap-growing-percent=20')
  const look = setInterval(() => {
    const newSpace = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
    if ((newSpace?.space_size ?? 0) < newSpaceBytes) return
    setFlagsFromString('--semi-space-growth-factor=1')
    clearInterval(look)
  }, lookEveryMs)
  look.unref()
}
