/** Fastify and nothing else: what any server costs that reads a small JSON and answers one. */
import { answer, type CheckRequest, newServer, readArguments, schema } from './answer.ts'

const { port } = readArguments()
const app = newServer()
app.post<CheckRequest>('/v1/check', { schema }, async () => answer)
await app.listen({ port, host: '127.0.0.1' })
