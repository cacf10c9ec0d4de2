import { apiPages } from '../src/api-reference.ts'

/** A page for each API, made of its contract. */
export default { paths: () => apiPages().map(({ name, content }) => ({ params: { api: name }, content })) }
