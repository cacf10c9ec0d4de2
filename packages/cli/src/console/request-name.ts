/** Returns how a request reads: a route's template names its method already, unless the route takes any. */
export const requestName = (method: string, route: string): string =>
  route.includes(' ') ? route : `${method} ${route}`
