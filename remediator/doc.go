// Package remediator replaces unhealthy machines without putting a control plane at risk. It is the
// pure core: which machines are unhealthy (Judge), what was decided and done so far (State, Apply),
// what follows from it (Decide), and what to request from the owner now (Actions).
//
//	facts -> Decide(state, facts, now) -> []Event -> the log -> Apply -> Actions(state, facts) -> the owner -> facts ...
//
// One aggregate is one owner of machines: a control plane, a MachineDeployment, a MachineSet. All its machines are decided
// on together, so that no two of one control plane are ever under replacement at once.
//
// Every function here is deterministic and total: no clock, no I/O, no goroutine. The look at the world lives in
// remediator/observe, the writes in remediator/act, the loop that joins them with the log in remediator/runner.
//
// What never may live here: Kubernetes clients, NATS, a way to delete a Machine (only its owner may), or a guess where a
// fact is missing: unknown is a fact, and it makes everything more careful.
package remediator
