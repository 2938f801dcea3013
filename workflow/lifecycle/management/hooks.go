package management

import "scute.dev/workflow/lifecycle/hook"

// HookRegistrar binds hooks to the tasks of the workflows. It binds the same ones each time: a run that is resumed is
// constructed again.
type HookRegistrar interface {
	// Name begins the names of its hooks in the log: lower case letters, digits and dashes.
	Name() string
	BindManagementCreate(b *hook.Binder) error
	BindManagementUpgrade(b *hook.Binder) error
	BindManagementDelete(b *hook.Binder) error
}

// NoopHookRegistrar binds nothing. Embed it to write only the methods that bind something.
type NoopHookRegistrar struct{}

// BindManagementCreate binds nothing.
func (NoopHookRegistrar) BindManagementCreate(*hook.Binder) error { return nil }

// BindManagementUpgrade binds nothing.
func (NoopHookRegistrar) BindManagementUpgrade(*hook.Binder) error { return nil }

// BindManagementDelete binds nothing.
func (NoopHookRegistrar) BindManagementDelete(*hook.Binder) error { return nil }
