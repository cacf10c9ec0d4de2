/** A part of the site, in the order in which people come to need them. */
export interface Part {
  readonly title: string
  /** Pages from the root of the repository, by the words of the sidebar. */
  readonly pages: Readonly<Record<string, string>>
}

export const parts: readonly Part[] = [
  {
    title: 'Start',
    pages: {
      'Weir in two minutes': 'docs/two-minutes.md',
      'The first ten minutes': 'docs/first-ten-minutes.md',
      Examples: 'examples/README.md',
      'Beside other products': 'README.md',
    },
  },
  {
    title: 'By role',
    pages: {
      'Platform teams': 'docs/tutorials/platform.md',
      Support: 'docs/tutorials/support.md',
      Finance: 'docs/tutorials/finance.md',
      Operators: 'docs/tutorials/operator.md',
      Customers: 'docs/tutorials/customer.md',
    },
  },
  {
    title: 'What it is',
    pages: {
      Architecture: 'ARCHITECTURE.md',
      Glossary: 'docs/glossary.md',
      Security: 'docs/security.md',
      'Failure tests': 'docs/reliability.md',
      'What a decision costs': 'docs/cost.md',
    },
  },
  {
    title: 'Put it before your API',
    pages: {
      'Choose a way': 'docs/before-your-api.md',
      'Reverse proxy': 'docs/proxy.md',
      'Behind a gateway': 'docs/integrations/README.md',
      nginx: 'docs/integrations/nginx.md',
      Caddy: 'docs/integrations/caddy.md',
      HAProxy: 'docs/integrations/haproxy.md',
      'Envoy, by HTTP': 'docs/integrations/envoy.md',
      Traefik: 'docs/integrations/traefik.md',
      'Envoy, by gRPC': 'docs/grpc.md',
      'AI APIs': 'docs/ai.md',
      Money: 'docs/money.md',
      'AI gateways': 'docs/integrations/ai-gateways.md',
      'Check API': 'docs/check-api.md',
      'Node library': 'packages/client/README.md',
      Identity: 'docs/identity.md',
      'Rate-limit headers': 'docs/headers.md',
      'From another limiter': 'docs/migrations/README.md',
      'From Envoy ratelimit': 'docs/migrations/envoy-ratelimit.md',
      'From nginx, Kong or Traefik': 'docs/migrations/gateways.md',
      'From express-rate-limit': 'docs/migrations/express-rate-limit.md',
      'From @fastify/rate-limit': 'docs/migrations/fastify-rate-limit.md',
      'From rate-limiter-flexible': 'docs/migrations/rate-limiter-flexible.md',
    },
  },
  {
    title: 'Limits',
    pages: {
      Policy: 'docs/policy.md',
      Algorithms: 'docs/limits.md',
      'Holds and slots': 'docs/holds.md',
      Leases: 'docs/leases.md',
      Levels: 'docs/levels.md',
      'Why a request was refused': 'docs/why.md',
      Blocks: 'docs/blocks.md',
      'Admin API': 'docs/admin-api.md',
    },
  },
  { title: 'Usage and money', pages: { Usage: 'docs/usage.md', 'Prices and spend': 'docs/prices.md' } },
  { title: 'Alerts', pages: { Alerts: 'docs/alerts.md' } },
  {
    title: 'Run it',
    pages: {
      'Docker Compose': 'docs/deploy/docker.md',
      Kubernetes: 'docs/deploy/kubernetes.md',
      systemd: 'docs/deploy/systemd.md',
      'Helm chart': 'infra/helm/weir/README.md',
      Operating: 'docs/operating.md',
      Monitoring: 'docs/monitoring.md',
      Runbook: 'docs/runbook.md',
      Scaling: 'docs/scaling.md',
      'Running Redis': 'docs/redis.md',
      'High availability': 'docs/high-availability.md',
      'A cluster of ClickHouse': 'docs/clickhouse-cluster.md',
      'Backup and restore': 'docs/backup.md',
      'Load tests': 'docs/load.md',
      Debugging: 'docs/debugging.md',
      Tracing: 'docs/tracing.md',
      Audit: 'docs/audit.md',
      Journal: 'docs/journal.md',
      Metering: 'docs/metering.md',
      Benchmarks: 'docs/benchmarks.md',
    },
  },
  {
    title: 'API reference',
    pages: { 'Console API': 'docs/console-reference.md', 'Check API': 'docs/check-reference.md' },
  },
  {
    title: 'Reference',
    pages: {
      'Every name': 'docs/names.md',
      Errors: 'docs/errors.md',
      Variables: 'docs/configuration.md',
      Decisions: 'docs/decisions/README.md',
      Changes: 'CHANGELOG.md',
      Contributing: 'CONTRIBUTING.md',
      Tests: 'test/README.md',
      'Reporting a weakness': 'SECURITY.md',
    },
  },
]

/** Pages that are no entry of the sidebar: another page lists them. */
const listedElsewhere = /^(?:docs\/home|docs\/decisions\/\d{4}-.*|examples\/[\w-]+\/README)\.md$/

const entries = parts.flatMap(({ pages }) => Object.values(pages))

/** Whether a Markdown file is a page of the site. */
export const isPage = (path: string): boolean => entries.includes(path) || listedElsewhere.test(path)

/**
 * Where a page is in the site: docs/home.md is its start, the folder docs its root. Names in capitals could be those of
 * other pages where a disk does not tell them apart.
 */
export function placeOf(path: string): string {
  if (path === 'SECURITY.md') return 'reporting.md'
  if (path === 'docs/home.md') return 'index.md'
  if (path === 'README.md') return 'compared.md'
  const place = path.replace(/^docs\//, '').replace(/README\.md$/, 'index.md')
  return place.toLowerCase()
}
