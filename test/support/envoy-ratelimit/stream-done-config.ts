/** What Envoy makes a descriptor of, at the request or at the end of its stream. */
export interface RateLimit {
  readonly actions: readonly object[]
  readonly apply_on_stream_done?: boolean
  readonly hits_addend?: { readonly number?: number; readonly format?: string; readonly is_negative_hits?: boolean }
}

export interface Route {
  readonly prefix: string
  readonly limits: readonly RateLimit[]
  /**
   * Where the limits are: in the route's own action, or else in the filter's configuration for the route, which is
   * where Envoy Gateway writes them. Envoy reads the two by different code.
   */
  readonly place?: 'route'
  /** An API that is down. */
  readonly cluster?: 'nobody'
  /** What else the route says, as Envoy's configuration has it. */
  readonly more?: object
}

const typeUrl = (name: string) => ({ '@type': `type.googleapis.com/envoy.${name}` })
const filterName = 'envoy.filters.http.ratelimit'
const filterType = 'extensions.filters.http.ratelimit.v3'

const routeOf = ({ prefix, place, cluster, limits, more }: Route) => ({
  match: { prefix },
  ...more,
  route: { cluster: cluster ?? 'api', ...(place === 'route' && { rate_limits: limits }) },
  ...(place === undefined && {
    typed_per_filter_config: { [filterName]: { ...typeUrl(`${filterType}.RateLimitPerRoute`), rate_limits: limits } },
  }),
})

/** The metadata of each stream under this name, which Envoy has once a request is past this filter. */
const setsMetadata = (metadata_namespace: string, value: object) => ({
  name: `set ${metadata_namespace}`,
  typed_config: {
    ...typeUrl('extensions.filters.http.set_metadata.v3.Config'),
    metadata: [{ metadata_namespace, value }],
  },
})

const clusterOf = (name: string, port_value: number, isHttp2 = false) => ({
  name,
  connect_timeout: '5s',
  ...(isHttp2 && {
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        ...typeUrl('extensions.upstreams.http.v3.HttpProtocolOptions'),
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
  }),
  load_assignment: {
    cluster_name: name,
    endpoints: [
      { lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value } } } }] },
    ],
  },
})

/**
 * An Envoy whose rate limit filter asks at `rls`. The metadata `before` is set before that filter, `after` behind it.
 */
export function streamDoneConfig(options: {
  readonly port: number
  readonly rls: number
  readonly api: number
  /** A port where nothing listens. */
  readonly nobody: number
  readonly metadata: { readonly before: object; readonly after: object }
  readonly routes: readonly Route[]
}) {
  const rateLimit = {
    ...typeUrl(`${filterType}.RateLimit`),
    domain: 'streams',
    timeout: '20s',
    failure_mode_deny: true,
    rate_limit_service: { transport_api_version: 'V3', grpc_service: { envoy_grpc: { cluster_name: 'rls' } } },
  }
  const manager = {
    ...typeUrl('extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'),
    stat_prefix: 'clients',
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: options.routes.map(routeOf) }] },
    http_filters: [
      setsMetadata('before', options.metadata.before),
      { name: filterName, typed_config: rateLimit },
      setsMetadata('after', options.metadata.after),
      { name: 'router', typed_config: typeUrl('extensions.filters.http.router.v3.Router') },
    ],
  }
  const clusters = [
    clusterOf('rls', options.rls, true),
    clusterOf('api', options.api),
    clusterOf('nobody', options.nobody),
  ]
  return {
    static_resources: {
      listeners: [
        {
          address: { socket_address: { address: '127.0.0.1', port_value: options.port } },
          filter_chains: [{ filters: [{ name: 'http', typed_config: manager }] }],
        },
      ],
      clusters,
    },
  }
}
