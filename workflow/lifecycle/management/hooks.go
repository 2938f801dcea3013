package management

import "scute.dev/workflow/lifecycle/hook"

// HookRegistrar binds hooks to the tasks of the workflows. It must bind the same hooks each time, because a workflow is constructed again when its
// run is resumed.
type HookRegistrar interface {
	// Name is the prefix of its hooks' names in the log: lower case letters, digits and dashes.
	Name() string
	BindManagementCreate(b *hook.Binder) error
	BindManagementUpgrade(b *hook.Binder) error
	BindManagementDelete(b *hook.Binder) error
}

// NoopHookRegistrar binds nothing. Embed it to implement only some of the methods.
type NoopHookRegistrar struct{}

// BindManagementCreate binds nothing.
func (NoopHookRegistrar) BindManagementCreate(*hook.Binder) error { return nil }

// BindManagementUpgrade binds nothing.
func (NoopHookRegistrar) BindManagementUpgrade(*hook.Binder) error { return nil }

// BindManagementDelete binds nothing.
func (NoopHookRegistrar) BindManagementDelete(*hook.Binder) error { return nil }
