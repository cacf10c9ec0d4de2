import { afterEach, expect, test, vi } from 'vitest'
import { FrameBuffer } from '../format/frame.ts'
import type { Disk } from './disk.ts'
import { type Chunk, DiskQueue } from './disk-queue.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

/** A disk that takes as long as the test says, and sees whether it is asked for two writes at a time. */
class HeldDisk implements Disk {
  tookMs = 0
  overlaps = 0
  readonly written: number[] = []
  readonly #held: (() => void)[] = []
  #nowMs = 0

  constructor() {
    vi.spyOn(performance, 'now').mockImplementation(() => this.#nowMs)
  }

  writeSync(_fd: number, _bytes: Buffer, _from: number, length: number, at: number): number {
    this.overlaps += this.#held.length
    this.written.push(at)
    this.#nowMs += this.tookMs
    return length
  }

  async write(_fd: number, _bytes: Buffer, _from: number, length: number, at: number): Promise<number> {
    this.overlaps += this.#held.length
    await new Promise<void>((release) => this.#held.push(release))
    this.written.push(at)
    this.#nowMs += this.tookMs
    return length
  }

  sync = async () => undefined

  release(): void {
    for (const release of this.#held.splice(0)) release()
  }
}

function chunkAt(offset: number): Chunk {
  const frames = new FrameBuffer(64)
  frames.length = 10
  return { frames, segment: { number: 1, fd: 0 }, offset, groups: [Promise.withResolvers<boolean>()] }
}

function openQueue() {
  const disk = new HeldDisk()
  const committed: number[] = []
  const queue = new DiskQueue({
    disk,
    onCommitted: ({ offset }) => committed.push(offset),
    onDropped: () => expect.unreachable(),
  })
  return { disk, committed, queue }
}

test('while a write goes around the main thread no other begins, even when the disk has become quick meanwhile', async () => {
  const { disk, committed, queue } = openQueue()
  disk.tookMs = 30
  queue.push(chunkAt(0))
  expect(committed).toEqual([0])
  queue.push(chunkAt(10))
  queue.push(chunkAt(20))
  disk.tookMs = 1
  disk.release()
  await expect.poll(() => committed).toContain(10)
  queue.push(chunkAt(30))
  queue.push(chunkAt(40))
  await vi.waitFor(() => {
    disk.release()
    expect(queue.isIdle).toBe(true)
  })
  expect(disk.overlaps).toBe(0)
  expect([disk.written, committed]).toEqual([
    [0, 10, 20, 30, 40],
    [0, 10, 20, 30, 40],
  ])
})

test('Frames that gathered behind a slow write are written from the main thread once the disk is quick, and only while it is', async () => {
  const { disk, committed, queue } = openQueue()
  disk.tookMs = 30
  queue.push(chunkAt(0))
  for (const offset of [10, 20, 30, 40]) queue.push(chunkAt(offset))
  disk.tookMs = 1
  disk.release()
  const writeSync = disk.writeSync.bind(disk)
  disk.writeSync = (fd, bytes, from, length, at) => {
    if (at === 30) disk.tookMs = 30
    return writeSync(fd, bytes, from, length, at)
  }
  await expect.poll(() => committed).toEqual([0, 10, 20, 30])
  disk.release()
  await expect.poll(() => queue.isIdle).toBe(true)
  expect([committed, disk.overlaps]).toEqual([[0, 10, 20, 30, 40], 0])
})
