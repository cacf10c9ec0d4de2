import manifest from '../package.json' with { type: 'json' }

/** Of all of Weir but the library for applications, which is published by itself. */
export const { version } = manifest
