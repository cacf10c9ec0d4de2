/** Resolves after this time: for what lasts, such as a fault or an exchange. What is to become true is waited for. */
export const after = (ms: number): Promise<void> =>
  new Promise((resolve) => AbortSignal.timeout(ms).addEventListener('abort', () => resolve()))
