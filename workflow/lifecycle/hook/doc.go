// Package hook lets a provider, or any other part of a program, run something before or after a task of a named
// workflow.
//
//	func (tinkerbell) BindManagementCreate(b *hook.Binder) error {
//		return hook.After(b, management.PivotToManagement, func(c *management.Paired) error {
//			return installStack(&c.Context, c.Management)
//		})
//	}
//
// A task's name carries the types of the contexts before and after it, so that a handler can only ask for what is known
// where it runs: a hook before the bootstrap cluster exists that reads its address does not compile. A name that is no
// task of the workflow fails its construction, with the list of those that are.
//
// A hook is a recorded sub-step: it has its own events, it is not run again once it has succeeded, and a failed one
// keeps what comes after it from starting. A handler of failures (OnFailure) runs when a task has failed for good, and keeps nothing
// from anything.
//
// What never may live here: the workflows, which bring their own tasks, and effects.
package hook
