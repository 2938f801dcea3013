package workload

import "scute.dev/workflow/lifecycle/hook"

// HookRegistrar binds hooks to the tasks of the workflows. It binds the same ones each time: a run that is resumed is
// constructed again.
type HookRegistrar interface {
	// Name begins the names of its hooks in the log: lower case letters, digits and dashes.
	Name() string
	BindWorkloadCreate(b *hook.Binder) error
	BindWorkloadUpgrade(b *hook.Binder) error
	BindWorkloadDelete(b *hook.Binder) error
}

// NoopHookRegistrar binds nothing. Embed it to write only the methods that bind something.
type NoopHookRegistrar struct{}

// BindWorkloadCreate binds nothing.
func (NoopHookRegistrar) BindWorkloadCreate(*hook.Binder) error { return nil }

// BindWorkloadUpgrade binds nothing.
func (NoopHookRegistrar) BindWorkloadUpgrade(*hook.Binder) error { return nil }

// BindWorkloadDelete binds nothing.
func (NoopHookRegistrar) BindWorkloadDelete(*hook.Binder) error { return nil }
