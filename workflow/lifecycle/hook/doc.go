// Package hook runs code of a program before or after tasks of a named workflow.
//
//	func (tinkerbell) BindManagementCreate(b *hook.Binder) error {
//		return hook.After(b, management.PivotToManagement, func(c *management.Paired) error {
//			return installStack(&c.Context, c.Management)
//		})
//	}
//
// The name of a task carries the types of the contexts before and after it, so a handler can only
// read what is known when it runs: a hook that reads the address of the bootstrap cluster before
// that cluster exists does not compile. An unknown name is an error that lists the tasks of the
// workflow.
//
// A hook is a recorded step of its task: it has its own events, it does not run again after it has
// succeeded, and the next step does not start if it fails. A failure handler (OnFailure) runs when
// a task has failed permanently, and blocks nothing.
//
// This package never contains workflows, and never changes a cluster.
package hook
