/**
 * The order of the steps of a delivery. `queued` is the first one, whatever its time: an alert that is raised again,
 * because a process was killed, has a later time, and is queued again after it may have been delivered.
 */
export const inTurn = "(outcome != 'queued', at, attempt)"
