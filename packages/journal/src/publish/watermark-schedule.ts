/** While records come, usage is reported complete this much later at most. */
const everyMs = 1_000

/**
 * While none come. Each round of watermarks wakes Kafka, metering and ClickHouse for every partition, and says of a
 * journal without records only that it lives. Far below the minute after which a journal counts as silent.
 */
const idleEveryMs = 5_000

/** A caller that asks for usage after its last request waits for a watermark of after its answer. */
const busyForMs = 5_000

/** When the watermarks of a journal are due: every second while records come and shortly after, else seldom. */
export class WatermarkSchedule {
  #lastMs = Number.NEGATIVE_INFINITY
  #busyUntilMs = Number.NEGATIVE_INFINITY
  #records = 0

  /**
   * Whether watermarks are due; those of the next call are counted from the last one that was. `nowMs` is of a clock
   * that is never set back.
   *
   * @param records how many records the journal has by now; more than at the last call means that it is busy.
   */
  isDue(nowMs: number, records: number): boolean {
    if (records !== this.#records) this.#busyUntilMs = nowMs + busyForMs
    this.#records = records
    const due = this.#lastMs + (nowMs < this.#busyUntilMs ? everyMs : idleEveryMs)
    if (nowMs < due) return false
    this.#lastMs = nowMs
    return true
  }
}
