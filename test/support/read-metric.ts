/** A metric in Prometheus text, summed over its labels; of `name{…}` those series whose labels begin so. */
export function metricIn(page: string, name: string): number | undefined {
  const [plain = '', labels = ''] = name.split(/[{}]/)
  const series = page.split('\n').filter((line) => {
    return line.startsWith(`${plain} `) || line.startsWith(`${plain}{${labels}`)
  })
  if (series.length === 0) return undefined
  return series.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

/** A metric of a service, by the address of its ops port; see `metricIn`. Rejects when it has none of that name. */
export async function readMetric(ops: string, name: string): Promise<number> {
  const response = await fetch(`${ops}/metrics`, { signal: AbortSignal.timeout(5_000) })
  const found = metricIn(await response.text(), name)
  if (found === undefined) throw new Error(`${ops} has no metric ${name}`)
  return found
}
