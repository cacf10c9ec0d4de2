import { join } from 'node:path'
import { goProgram } from '../go-program.ts'

/**
 * The path of `envoyproxy/ratelimit`'s server, which Weir's answers are compared with. It is published as source only.
 */
export const referenceProgram = (): Promise<string> =>
  goProgram({
    name: 'envoy-ratelimit',
    module: join(import.meta.dirname, 'reference'),
    version: 'v1.4.1-0.20230427142404-e2a87f41d3a7',
    path: 'github.com/envoyproxy/ratelimit/src/service_cmd',
  })
