import type { TestProject } from 'vitest/node'
import { openEngine } from './engine.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Variables by which a terminal reaches the engine of the tier. */
    dockerEnvironment: Record<string, string>
  }
}

/** Global set-up: one Docker engine for the whole tier, with all images. */
export default async (project: TestProject) => {
  process.stderr.write('docker: makes the images; the first time takes a quarter of an hour …\n')
  const engine = await openEngine()
  project.provide('dockerEnvironment', engine.environment)
  return () => engine.close()
}
