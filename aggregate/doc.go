// Package aggregate reads, claims and updates one object of the log, with one semantics for all
// domains. It reads a move, a run or an owner of machines from the log, claims it, and records,
// applies and stores decisions. View keeps all objects of a kind, for reading.
//
// There is one semantics for all domains:
//   - The state is what a replay of the log gives: an event is applied as it is read back, not as it was made.
//   - An append builds on the sequence that the state was read at. When somebody else has appended, it fails with
//     eventlog.ErrConflict, nothing is stored, and the caller reads, looks at who has claimed the object, and decides again.
//   - What is decided together is stored in the order in which it was decided, in one commit where it fits into one.
//   - An object whose events this program cannot read stops: nothing is applied after the unreadable event. All others continue.
//   - An event names the one that it follows from, which the domain's links relate it to.
//
// What never may live here: what is decided, and when. It knows no domain, no Kubernetes, and no NATS.
package aggregate
