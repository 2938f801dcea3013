package workload

import "scute.dev/workflow/lifecycle/hook"

// HookRegistrar binds hooks to the tasks of the workflows. It must bind the same hooks each time, because a workflow is constructed again when its
// run is resumed.
type HookRegistrar interface {
	// Name is the prefix of its hooks' names in the log: lower case letters, digits and dashes.
	Name() string
	BindWorkloadCreate(b *hook.Binder) error
	BindWorkloadUpgrade(b *hook.Binder) error
	BindWorkloadDelete(b *hook.Binder) error
}

// NoopHookRegistrar binds nothing. Embed it to implement only some of the methods.
type NoopHookRegistrar struct{}

// BindWorkloadCreate binds nothing.
func (NoopHookRegistrar) BindWorkloadCreate(*hook.Binder) error { return nil }

// BindWorkloadUpgrade binds nothing.
func (NoopHookRegistrar) BindWorkloadUpgrade(*hook.Binder) error { return nil }

// BindWorkloadDelete binds nothing.
func (NoopHookRegistrar) BindWorkloadDelete(*hook.Binder) error { return nil }
