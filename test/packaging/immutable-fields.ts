import type { Manifest } from './chart-tools.ts'

/** What Kubernetes lets an update change of a StatefulSet's spec; all else is immutable. */
const statefulSetMay = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
]

/** The fields of an object that an update may not change. */
function immutableOf({ kind, spec = {}, metadata }: Manifest): unknown {
  // A hook's job is deleted before the next one is created.
  if (metadata.annotations?.['helm.sh/hook-delete-policy'] === 'before-hook-creation') return undefined
  if (kind === 'StatefulSet') {
    return Object.fromEntries(Object.entries(spec).filter(([name]) => !statefulSetMay.includes(name)))
  }
  if (kind === 'Deployment') return spec.selector
  if (kind === 'Service') return spec.clusterIP
  if (kind === 'Job') return [spec.template, spec.selector, spec.completions]
  if (kind === 'PersistentVolumeClaim') return spec
  return undefined
}

/** Objects that the second rendering has in common with the first, and whose immutable fields differ. */
export function immutableDifferences(before: readonly Manifest[], after: readonly Manifest[]): string[] {
  const nameOf = ({ kind, metadata }: Manifest) => `${kind} ${metadata.name}`
  const was = new Map(before.map((one) => [nameOf(one), JSON.stringify(immutableOf(one))]))
  return after.flatMap((one) => {
    const then = was.get(nameOf(one))
    return was.has(nameOf(one)) && then !== JSON.stringify(immutableOf(one)) ? [nameOf(one)] : []
  })
}
