/** A counter or gauge of a service, by the address of its ops port. Rejects when it has none of that name. */
export async function readMetric(ops: string, name: string): Promise<number> {
  const response = await fetch(`${ops}/metrics`, { signal: AbortSignal.timeout(5_000) })
  const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(await response.text())?.[1]
  if (found === undefined) throw new Error(`${ops} has no metric ${name}`)
  return Number(found)
}
