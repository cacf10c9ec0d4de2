import { inject } from 'vitest'
import type { RunningWeir } from './weir-up.ts'

/**
 * The tier's whole Weir, with the demo's policy. Leave its policy as it was, and count only what subjects of your own
 * used.
 */
export async function wholeWeir(): Promise<Pick<RunningWeir, 'line' | 'dir'>> {
  const answer = await fetch(inject('weirUrl'))
  if (!answer.ok) throw new Error(await answer.text())
  return (await answer.json()) as RunningWeir
}
