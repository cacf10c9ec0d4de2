import type { Descriptor } from './rls-client.ts'

/** A request repeated, with how many of the first ones are admitted: all others are over the limit. */
export interface Asked {
  readonly descriptors: readonly Descriptor[]
  readonly times: number
  readonly admitted: number
  /**
   * Whether a limit in shadow mode is met: Weir tells nobody of those, the reference server shows what is left of them.
   */
  readonly isShadow?: boolean
}

/** A configuration as the reference server's documentation shows it, and what it says becomes of requests. */
export interface Example {
  readonly shows: string
  readonly domain: string
  readonly config: string
  readonly asked: readonly Asked[]
}

/** One descriptor: `key=value` for each of its entries. */
export function descriptor(...entries: readonly string[]): Descriptor {
  return {
    entries: entries.map((entry) => {
      const at = entry.indexOf('=')
      return { key: entry.slice(0, at), value: entry.slice(at + 1) }
    }),
  }
}

const inShadow = (asked: Asked): Asked => ({ ...asked, isShadow: true })
const ask = (entries: readonly string[], times: number, admitted: number): Asked => ({
  descriptors: [descriptor(...entries)],
  ...{ times, admitted },
})

/**
 * The examples of the documentation by their numbers, and its example configuration. Sizes are smaller, so that a test
 * gets over them, and seconds are minutes, so that none of them ends within a test.
 */
export const documented: readonly Example[] = [
  {
    shows: '1: two values of one key, each with a limit of its own',
    domain: 'mongo_cps',
    config: `
domain: mongo_cps
descriptors:
- { key: database, value: users, rate_limit: { unit: minute, requests_per_unit: 3 } }
- { key: database, value: default, rate_limit: { unit: minute, requests_per_unit: 5 } }
`,
    asked: [
      ask(['database=users'], 5, 3),
      ask(['database=default'], 7, 5),
      ask(['database=other'], 4, 4),
      ask(['table=users'], 4, 4),
    ],
  },
  {
    shows: '2: a limit below another descriptor, and one for any value that counts each apart',
    domain: 'messaging',
    config: `
domain: messaging
descriptors:
- key: message_type
  value: marketing
  descriptors:
  - { key: to_number, rate_limit: { unit: day, requests_per_unit: 5 } }
- { key: to_number, rate_limit: { unit: day, requests_per_unit: 9 } }
`,
    asked: [
      ask(['message_type=marketing', 'to_number=2061111111'], 7, 5),
      ask(['message_type=marketing', 'to_number=2062222222'], 7, 5),
      ask(['message_type=marketing'], 4, 4),
      ask(['message_type=notice', 'to_number=2061111111'], 4, 4),
      ask(['to_number=2061111111'], 11, 9),
      ask(['to_number=2062222222'], 11, 9),
    ],
  },
  {
    shows: '3: key and value before the key alone',
    domain: 'edge_proxy_per_ip',
    config: `
domain: edge_proxy_per_ip
descriptors:
- { key: remote_address, rate_limit: { unit: minute, requests_per_unit: 4 } }
- { key: remote_address, value: 50.0.0.5, rate_limit: { unit: minute, requests_per_unit: 0 } }
`,
    asked: [
      ask(['remote_address=50.0.0.1'], 6, 4),
      ask(['remote_address=50.0.0.5'], 3, 0),
      ask(['remote_address=50.0.0.2'], 6, 4),
    ],
  },
  {
    shows: '4: as many entries as there are levels',
    domain: 'example4',
    config: `
domain: example4
descriptors:
- { key: key, value: value, rate_limit: { requests_per_unit: 2, unit: minute } }
- key: key
  value: nested
  descriptors:
  - { key: subkey, rate_limit: { requests_per_unit: 2, unit: minute } }
`,
    asked: [
      ask(['key=value', 'subkey=subvalue'], 4, 4),
      ask(['key=value'], 4, 2),
      ask(['key=nested'], 4, 4),
      ask(['key=nested', 'subkey=subvalue'], 4, 2),
      ask(['key=nested', 'subkey=subvalue', 'more=1'], 4, 4),
    ],
  },
  {
    shows: '5: unlimited',
    domain: 'internal',
    config: `
domain: internal
descriptors:
- { key: ldap, rate_limit: { unlimited: true } }
- { key: azure, rate_limit: { unit: minute, requests_per_unit: 3 } }
`,
    asked: [ask(['ldap=a'], 6, 6), ask(['azure=a'], 5, 3)],
  },
  {
    shows: '6: shadow mode for one of two users',
    domain: 'example6',
    config: `
domain: example6
descriptors:
- key: service
  descriptors:
  - { key: user, value: user-a, rate_limit: { requests_per_unit: 2, unit: minute }, shadow_mode: true }
  - { key: user, value: user-b, rate_limit: { requests_per_unit: 4, unit: minute } }
`,
    asked: [
      inShadow(ask(['service=auth-service', 'user=user-a'], 6, 6)),
      ask(['service=auth-service', 'user=user-b'], 6, 4),
      ask(['service=other-service', 'user=user-b'], 6, 4),
      ask(['service=auth-service', 'user=user-c'], 6, 6),
    ],
  },
  {
    shows: '7: a limit that replaces another where both would apply',
    domain: 'example7',
    config: `
domain: example7
descriptors:
- key: key_1
  value: value_1
  descriptors:
  - { key: user, value: bkthomps, rate_limit: { name: specific_limit, requests_per_unit: 3, unit: minute } }
- key: key_2
  value: value_2
  descriptors:
  - { key: user, value: bkthomps, rate_limit: { replaces: [{ name: specific_limit }], requests_per_unit: 6, unit: minute } }
`,
    asked: [
      {
        descriptors: [descriptor('key_1=value_1', 'user=bkthomps'), descriptor('key_2=value_2', 'user=bkthomps')],
        ...{ times: 4, admitted: 4 },
      },
      ask(['key_1=value_1', 'user=bkthomps'], 5, 3),
      ask(['key_2=value_2', 'user=bkthomps'], 4, 2),
    ],
  },
  {
    shows: '8: metrics in detail, which change no limit',
    domain: 'example8',
    config: `
domain: example8
descriptors:
- { key: key1, detailed_metric: true, rate_limit: { unit: minute, requests_per_unit: 2 } }
- { key: key1, value: value1, rate_limit: { unit: minute, requests_per_unit: 4 } }
`,
    asked: [ask(['key1=unspecified_value'], 4, 2), ask(['key1=unspecified_value2'], 4, 2), ask(['key1=value1'], 6, 4)],
  },
  {
    shows: '9: values that begin so, each counted apart',
    domain: 'example9',
    config: `
domain: example9
descriptors:
- { key: key1, value: value*, rate_limit: { unit: minute, requests_per_unit: 3 } }
`,
    asked: [ask(['key1=value_1'], 5, 3), ask(['key1=value_2'], 5, 3), ask(['key1=other'], 5, 5)],
  },
  {
    shows: 'the example configuration',
    domain: 'rl',
    config: `
domain: rl
descriptors:
- { key: category, value: account, rate_limit: { unit: minute, requests_per_unit: 4, replaces: [{ name: bkthomps }, { name: fake_name }] } }
- key: source_cluster
  value: proxy
  descriptors:
  - { key: destination_cluster, value: bkthomps, rate_limit: { unit: minute, requests_per_unit: 2, replaces: [{ name: bkthomps }] } }
  - { key: destination_cluster, value: mock, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: destination_cluster, value: override, rate_limit: { unit: minute, requests_per_unit: 2, replaces: [{ name: banned_limit }] } }
  - { key: destination_cluster, value: fake, rate_limit: { name: fake_name, unit: minute, requests_per_unit: 2 } }
- key: foo
  rate_limit: { unit: minute, requests_per_unit: 2 }
  descriptors:
  - { key: bar, rate_limit: { unit: minute, requests_per_unit: 3 } }
  - { key: bar, value: bkthomps, rate_limit: { name: bkthomps, unit: minute, requests_per_unit: 1 } }
  - { key: bar, value: banned, rate_limit: { name: banned_limit, unit: minute, requests_per_unit: 0 } }
  - { key: baz, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: baz, value: not-so-shady, rate_limit: { unit: minute, requests_per_unit: 3 } }
  - { key: baz, value: shady, rate_limit: { unit: minute, requests_per_unit: 3 }, shadow_mode: true }
  - { key: bay, rate_limit: { unlimited: true } }
- { key: unspec, detailed_metric: true, rate_limit: { unit: minute, requests_per_unit: 2 } }
- { key: qux, rate_limit: { unlimited: true } }
`,
    asked: [
      ask(['source_cluster=proxy', 'destination_cluster=mock'], 3, 1),
      ask(['source_cluster=other', 'destination_cluster=mock'], 3, 3),
      ask(['foo=a'], 4, 2),
      ask(['foo=b'], 4, 2),
      ask(['foo=a', 'bar=b'], 5, 3),
      ask(['foo=a', 'bar=banned'], 2, 0),
      ask(['foo=a', 'baz=b'], 3, 1),
      ask(['foo=a', 'baz=not-so-shady'], 5, 3),
      inShadow(ask(['foo=a', 'baz=shady'], 6, 6)),
      ask(['foo=a', 'bay=b'], 5, 5),
      ask(['unspec=a'], 4, 2),
      ask(['qux=a'], 5, 5),
      {
        descriptors: [
          descriptor('foo=replaced', 'bar=bkthomps'),
          descriptor('source_cluster=proxy', 'destination_cluster=bkthomps'),
        ],
        ...{ times: 2, admitted: 2 },
      },
      ask(['foo=replaced', 'bar=bkthomps'], 2, 1),
      {
        descriptors: [
          descriptor('foo=again', 'bar=banned'),
          descriptor('source_cluster=proxy', 'destination_cluster=override'),
        ],
        ...{ times: 3, admitted: 2 },
      },
      {
        descriptors: [
          descriptor('foo=third', 'bar=bkthomps'),
          descriptor('source_cluster=proxy', 'destination_cluster=fake'),
          descriptor('category=account'),
        ],
        ...{ times: 5, admitted: 4 },
      },
      ask(['source_cluster=proxy', 'destination_cluster=fake'], 3, 2),
    ],
  },
]

/** What its documentation does not show: texts of any kind, branches without a limit, keys that are there twice. */
export const beyondDocumented: Example = {
  shows: 'odd values, branches without a limit, a key twice',
  domain: 'other things/é',
  config: `
domain: "other things/é"
descriptors:
- { key: path, value: "/v1/a b?c=ü#:*%2F", rate_limit: { unit: hour, requests_per_unit: 2 } }
- { key: path, value: "/static/*", rate_limit: { unit: hour, requests_per_unit: 3 } }
- { key: path, rate_limit: { unit: hour, requests_per_unit: 4 } }
- key: tenant
  rate_limit: { unit: hour, requests_per_unit: 2 }
  descriptors:
  - { key: path, rate_limit: { unit: hour, requests_per_unit: 3 } }
- key: tenant
  value: internal
  descriptors:
  - { key: job, rate_limit: { unit: hour, requests_per_unit: 1 } }
- { key: tenant, value: trusted }
- key: generic_key
  value: slow
  descriptors:
  - { key: generic_key, rate_limit: { unit: hour, requests_per_unit: 2 } }
`,
  asked: [
    ask(['path=/v1/a b?c=ü#:*%2F'], 4, 2),
    ask(['path=/static/app.js'], 5, 3),
    ask(['path=/static/'], 5, 3),
    ask(['path=/static'], 6, 4),
    ask(['path=.'], 6, 4),
    ask(['path='], 6, 4),
    ask([`path=${'x'.repeat(200)}`], 6, 4),
    ask(['tenant=a'], 4, 2),
    ask(['tenant=a', 'path=/'], 5, 3),
    ask(['tenant=internal'], 4, 4),
    ask(['tenant=internal', 'path=/'], 4, 4),
    ask(['tenant=internal', 'job=1'], 3, 1),
    ask(['tenant=trusted'], 4, 4),
    ask(['tenant=trusted', 'path=/'], 4, 4),
    ask(['generic_key=slow', 'generic_key=a'], 4, 2),
    ask(['generic_key=slow', 'generic_key=b'], 4, 2),
    ask(['generic_key=fast', 'generic_key=b'], 4, 4),
  ],
}
