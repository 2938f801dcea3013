package workload

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/hook"
)

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

// bind calls all registrars: those of the program, and the provider if it is one. What fails is a problem of the build.
func (d *Deps) bind(provider any, points []hook.Point, bind func(HookRegistrar, *hook.Binder) error) (*hook.Binder, []workflow.Problem) {
	b := hook.NewBinder(points...)
	registrars := d.Registrars
	if r, ok := provider.(HookRegistrar); ok {
		registrars = append(registrars[:len(registrars):len(registrars)], r)
	}
	var problems []workflow.Problem
	for _, r := range registrars {
		known := b.Failures()
		err := bind(r, b.As(r.Name()))
		if err != nil && b.Failures() == known { // else Build tells it
			problems = append(problems, workflow.Problem{Field: "spec.workflow", Message: "hooks of " + r.Name() + ": " + err.Error()})
		}
	}
	return b, problems
}
