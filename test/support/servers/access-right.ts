import { kafkajs } from '@weir/kafka/wire/kafkajs-fixes.ts'
import type { AclEntry } from 'kafkajs'

/** One right on a Kafka, in the words of `kafka-acls.sh`. */
export interface AccessRight {
  readonly resource: 'Topic' | 'Group' | 'Cluster' | 'TransactionalId'
  /** `kafka-cluster` for the cluster. */
  readonly name: string
  readonly pattern?: 'literal' | 'prefixed'
  /** `Read`, `DescribeConfigs` and so on. */
  readonly operation: string
}

/** The name in kafkajs: `DescribeConfigs` is `DESCRIBE_CONFIGS` there. */
const constant = (word: string) => word.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase()

function numberOf(kinds: object, word: string): number {
  const found: unknown = Reflect.get(kinds, constant(word))
  if (typeof found !== 'number') throw new Error(`Kafka has no ${word}`)
  return found
}

/** The entry that gives a user this right from everywhere. */
export function aclOf(user: string, { resource, name, pattern = 'literal', operation }: AccessRight): AclEntry {
  return {
    principal: `User:${user}`,
    host: '*',
    resourceType: numberOf(kafkajs.AclResourceTypes, resource),
    resourceName: name,
    resourcePatternType: numberOf(kafkajs.ResourcePatternTypes, pattern),
    operation: numberOf(kafkajs.AclOperationTypes, operation),
    permissionType: kafkajs.AclPermissionTypes.ALLOW,
  }
}
