/** The first pause after a failure, long enough for a new leader to be named. */
const firstMs = 100

/** Nobody should have to wait longer than this once Kafka is back. */
const capMs = 5_000

/** Pause before the attempt after `failures` failed ones in a row: doubled each time up to the cap, the upper half at random. */
export function retryDelayMs(failures: number, random: () => number = Math.random): number {
  const wholeMs = Math.min(capMs, firstMs * 2 ** Math.min(failures - 1, 10)) // 2^10 is far above the cap
  return wholeMs / 2 + (wholeMs / 2) * random()
}
