import { expect, test } from 'vitest'
import { commandedRights, documentedRights, type RightsOf } from '../support/documented-rights.ts'

const lines = (rights: RightsOf) =>
  [...rights].flatMap(([user, own]) => own.map((one) => `${user}: ${Object.values(one).join(' ')}`)).sort()

test('The commands of docs/configuration.md grant the rights of its table on Kafka, and no others', () => {
  const documented = lines(documentedRights())
  expect(documented.length).toBeGreaterThan(40)
  expect(lines(commandedRights())).toEqual(documented)
})
