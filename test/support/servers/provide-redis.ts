import { redisServer } from '@weir/local-redis/redis-server.ts'
import type { TestProject } from 'vitest/node'
import { provideServer } from './provide-server.ts'

/** Global set-up: one Redis for the whole tier. Tests use random key names and never flush it. */
export default (project: TestProject) => provideServer(project, redisServer, 'redisUrl', 'WEIR_REDIS_URL')
