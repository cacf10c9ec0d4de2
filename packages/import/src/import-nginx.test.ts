import { expect, test } from 'vitest'
import { importNginx } from './import-nginx.ts'
import { readNginxFile } from './nginx-file.ts'
import { imported, problemsOf } from './testing/imported.ts'

const zone = 'limit_req_zone $binary_remote_addr zone=z:1m rate=1r/s;'

test('Words, quotes, comments and variables are read as nginx reads them, each directive with its line', () => {
  const { directives, problems } = readNginxFile(
    `# a comment; {
log_format main '$remote_addr "x"; {' "a\\"b";
location ~ "^/a{2}$" { set $x \${y}z#no; }
end on;`,
    'f',
  )
  expect(problems).toEqual([])
  expect(directives.map(({ name, line, args, block }) => [name, line, args, block?.length])).toEqual([
    ['log_format', 2, ['main', '$remote_addr "x"; {', 'a"b'], undefined],
    ['location', 3, ['~', '^/a{2}$'], 1],
    ['end', 4, ['on'], undefined],
  ])
  expect(directives[1]?.block?.[0]?.args).toEqual(['$x', `\${y}z#no`])
})

test('A policy of every kind of limit is valid, in shadow too', () => {
  const { policy, notes } = imported(
    importNginx,
    `
${zone}
limit_req_zone $cookie_sid$arg_q$http_x_api_key zone=parts:1m rate=6r/m;
limit_req_status 429;
server {
  location / { limit_req zone=z burst=9; }
  location = /exact { limit_req zone=parts burst=2 nodelay; }
  location /a/ { limit_req zone=z burst=500; location /a/b/ { } }
}`,
  )
  expect(problemsOf(policy, notes)).toEqual([])
  expect([...policy.limits].map(([name, { body }]) => [name, body.burst, body.by, body.onExceed])).toEqual([
    ['z', 1, ['ip'], { delay: '10s', queue: 9 }],
    ['parts', 3, ['cookie:sid', 'query:q', 'key'], undefined],
    ['z-2', 1, ['ip'], { delay: '1m', queue: 500 }],
  ])
})

test('A thousand locations of one zone are one limit', () => {
  const locations = Array.from({ length: 1_000 }, (_, at) => `location /l${at}/ { limit_req zone=z; }`)
  const { policy } = imported(importNginx, `${zone} server { location /free/ { } ${locations.join('\n')} }`)
  expect([policy.limits.size, policy.routes.length]).toEqual([1, 1_002])
})

const server = 'server { include snippets/limits.conf; location / { } include /etc/nginx/more.d/*.conf; }'
const main = `http { ${zone}\ninclude /etc/nginx/sites/*; include elsewhere.conf; }`
const snippet = 'limit_req zone=z burst=2 nodelay;'

test('An include is what files that are named have, in its place, and is named if none has it', () => {
  const files = [
    { name: 'conf/nginx.conf', text: main },
    { name: 'conf/sites/a', text: server },
    { name: 'conf/snippets/limits.conf', text: snippet },
    { name: 'conf/more.d/b.conf', text: '\nlocation /b/ { limit_req zone=z; }' },
  ]
  const result = importNginx(files)
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  expect(result.policy.routes.map(({ body }) => body)).toEqual([
    { match: '* /*', limits: ['z'] },
    { match: '* /b/*', limits: ['z-2'] },
  ])
  const lost = result.notes.filter(({ kind }) => kind === 'lost')
  expect(lost.map(({ what }) => what)).toEqual(['include elsewhere.conf: this file is not read'])
})

test('A location without its server is named', () => {
  const { notes } = imported(importNginx, 'location /x { limit_req zone=z; }')
  expect(notes.map(({ what }) => what)).toEqual(['location /x is in no server'])
})
