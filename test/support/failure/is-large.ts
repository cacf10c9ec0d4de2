/** `WEIR_TEST_TOPOLOGY=ha`: three brokers, a Cluster of three masters with a replica each, two of each service. */
export const isLarge = process.env.WEIR_TEST_TOPOLOGY === 'ha'
