// Package aggregate keeps one object of a domain (a move, a run, an owner of machines) in step with
// the log. Root reads and claims an object, and appends events about it. View holds all objects of
// a kind for reading.
//
// The same rules hold for all domains:
//   - The state equals the result of a replay: an event is applied as the log returns it, and not as it was created.
//   - An append names the sequence at which the state was read. If another process has appended since, the append fails with
//     eventlog.ErrConflict and stores nothing. The caller reads, checks who has claimed the object, and decides again.
//   - Events that were decided together are stored in order, in one commit if they fit.
//   - If this program cannot read an event of an object, it applies no later event of that object. Other objects continue.
//   - An event names its cause, the earlier event that the domain's Links relate it to.
//
// This package never contains decisions. It knows no domain, no Kubernetes, and no NATS.
package aggregate
