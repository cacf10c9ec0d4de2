import type { JsonObject } from '../entities.ts'
import { endpointEntries } from './read-endpoints.ts'
import { identity } from './read-identity.ts'
import { limitEntries } from './read-limits.ts'
import { planEntries } from './read-plans.ts'
import { routeList } from './read-routes.ts'
import { subjectEntries } from './read-subjects.ts'
import { tokenEntries } from './read-tokens.ts'
import { upstreamEntries } from './read-upstreams.ts'
import { watchEntries } from './read-watches.ts'
import * as t from './value-types.ts'

const section = (description: string, { schema }: { readonly schema: JsonObject }) => ({ description, ...schema })

/**
 * The JSON Schema of weir.yaml, made of the tables by which it is read: docs/weir.schema.json. A test compares the
 * two, and writes the file: `node node_modules/vitest/vitest.mjs run --project unit
 * packages/policy/src/reader/policy-schema.test.ts -u`.
 */
export const policySchema: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'weir.schema.json',
  title: "Weir's policy (weir.yaml)",
  ...t.objectSchema(
    {},
    {
      description:
        'For editors. docs/policy.md says what everything means; `weir check` applies every rule, also those that a schema cannot say.',
      required: ['version'],
      properties: {
        version: { description: 'The format.', const: 1 },
        identity: { description: 'How callers are told apart.', ...t.emptyOr(identity.schema) },
        tokens: section('Tokens of people and programs that work with Weir itself, by name.', tokenEntries),
        plans: section('Named sets of limits.', planEntries),
        limits: section('Limits by name; the name is part of the Redis key.', limitEntries),
        routes: {
          description: 'Methods and paths with what a request to them costs.',
          ...t.emptyOr(routeList.schema),
        },
        upstreams: section('APIs behind the ingress, by name.', upstreamEntries),
        subjects: section('Who is limited and metered, by id.', subjectEntries),
        endpoints: section('Where alerts go, by name.', endpointEntries),
        watches: section('Sudden changes that are alerts, by name.', watchEntries),
      },
    },
  ),
}
