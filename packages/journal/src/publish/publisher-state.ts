const fields = ['sent', 'failedAttempts', 'quarantined', 'adopted', 'oldestMs', 'replicas'] as const
type Field = (typeof fields)[number]

/**
 * What the publisher's thread tells the main thread, in shared memory: reading it costs nothing, and it outlives the
 * thread. Counts are since the process started, of all threads that it had.
 */
export class PublisherState {
  readonly shared: SharedArrayBuffer
  readonly #numbers: BigInt64Array

  constructor(shared = new SharedArrayBuffer(fields.length * 8)) {
    this.shared = shared
    this.#numbers = new BigInt64Array(shared)
  }

  get(field: Field): number {
    return Number(Atomics.load(this.#numbers, fields.indexOf(field)))
  }

  set(field: Field, value: number): void {
    Atomics.store(this.#numbers, fields.indexOf(field), BigInt(value))
  }

  add(field: Field, value: number): void {
    Atomics.add(this.#numbers, fields.indexOf(field), BigInt(value))
  }
}
