// Package supervise drives the unfinished objects of a view of the log (moves, runs). It knows only
// IDs and namespaces.
//
// A change in the view enqueues an ID in a client-go workqueue, in which the namespaces alternate.
// One goroutine drives an object until it has nothing more to do; the number of objects that are
// driven at once is bounded. An object that is still due then is driven again after a backoff.
//
// Moves, runs, pauses and backup schedules keep one contract with it, because a process may die
// between any two appends or effects, and another may drive the same object:
//   - A request appends the first events. Repeating it changes nothing.
//   - A drive returns if nothing is due. Otherwise it claims the object by an event before its first
//     effect, and stops when another process has claimed it.
//   - An effect is in the log before it begins. The next drive checks or repeats an effect whose
//     result is not in the log.
//   - A command of an operator or a resource is an event that follows from the state. After a
//     conflict it is decided again.
//   - A wait ends with the next commit of another process.
//
// This package never contains the work itself, or a decision about it.
package supervise
