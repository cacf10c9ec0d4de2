/** What was visible when, by partition. */
export interface Sight {
  readonly atMs: number
  readonly lastOffset: ReadonlyMap<number, number>
}

/** When a row's decision was made, and where its record is. */
export interface Row {
  readonly partition: number
  readonly offset: string
  readonly ts_ms: string
}

/** From each row's decision to the first look that saw it, in order. */
export function delays(rows: readonly Row[], sights: readonly Sight[]): number[] {
  const byPartition = Map.groupBy(rows, ({ partition }) => partition)
  const found: number[] = []
  for (const [partition, own] of byPartition) {
    const inOrder = own.toSorted((a, b) => Number(a.offset) - Number(b.offset))
    let at = 0
    for (const { offset, ts_ms } of inOrder) {
      while (at < sights.length - 1 && (sights[at]?.lastOffset.get(partition) ?? -1) < Number(offset)) at++
      found.push((sights[at]?.atMs ?? Number.NaN) - Number(ts_ms))
    }
  }
  return found.sort((a, b) => a - b)
}
