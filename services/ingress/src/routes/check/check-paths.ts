/** The addresses of one check, of many, and of units that are taken ahead. */
export const checkPath = '/v1/check'
export const batchPath = '/v1/check/batch'
export const leasesPath = '/v1/leases'
