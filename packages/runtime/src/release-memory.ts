/**
 * Gives memory that only the start needed back to the system: loading modules fills V8's space for new objects, which
 * then stays as large for as long as a quiet process has no reason to collect garbage. Blocks for up to 0.1 s: call it
 * before anything waits for the process. Not for a process that serves at high rates: its objects then pass through a
 * smaller space, and the ingress seemed to use more CPU with it, in a few rounds on a busy machine. Never rejects.
 */
export async function releaseStartMemory(): Promise<void> {
  try {
    const { Session } = await import('node:inspector/promises')
    const session = new Session()
    session.connect()
    // For V8 this is the news that memory is low: the one collection that also makes the spaces of the heap smaller.
    await session.post('HeapProfiler.collectGarbage')
    session.disconnect()
  } catch {
    // A Node that was built without its inspector goes on with the larger heap.
  }
}
