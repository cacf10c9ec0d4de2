import { int8, int32, withKafka } from './wire.ts'

/**
 * Whether the Kafka on this loopback port can serve: it lists a broker only once that broker has registered with the controller and
 * is no longer fenced. A port that merely accepts connections is open seconds before that.
 */
export const servesClients = (port: number): Promise<boolean> =>
  withKafka(port, async (ask) => {
    // For no topic, and none is created.
    const answer = await ask('metadata', int32(0), int8(0))
    return answer.readInt32BE(4) > 0 // the number of brokers, behind the throttle time
  })
