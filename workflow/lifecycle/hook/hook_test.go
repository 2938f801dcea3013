package hook_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/workflow/lifecycle/hook"
)

type (
	before struct{ Cluster string }
	after  struct {
		before
		Address string
	}
)

const (
	first  hook.Task[before, after] = "first"
	second hook.Task[after, after]  = "second"
	absent hook.Task[before, after] = "third"
	// otherWorkflow has the name of a task here, but belongs to another workflow.
	otherWorkflow hook.Task[before, before] = "first"
)

// TestHooksAreBoundInOrder checks the names of hooks. A failure handler that is bound before them must not change
// their numbers: a run of an earlier version would perform other hooks.
func TestHooksAreBoundInOrder(t *testing.T) {
	b := hook.NewBinder(first.Point(), second.Point())
	nothing := func(*before) error { return nil }
	for _, err := range []error{
		hook.OnFailure(b.SetRegistrar("one"), nothing),
		hook.Before(b.SetRegistrar("one"), first, nothing),
		hook.Before(b.SetRegistrar("two"), first, nothing, nothing),
		hook.After(b.SetRegistrar("one"), first, func(c *after) error { c.Address = ""; return nil }),
		hook.Before(b, second, func(*after) error { return nil }),
		hook.OnFailure(b.SetRegistrar("one"), nothing),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, h := range slices.Concat(b.HooksAt("first", false), b.HooksAt("first", true), b.HooksAt("second", false), b.OnFailure()) {
		names = append(names, h.Name)
	}
	if diff := cmp.Diff([]string{"one-1", "two-1", "one-2", "one-3", "one-1", "one-2"}, names); diff != "" {
		t.Error(diff)
	}
	if b.HooksAt("first", false)[1].Undo == nil || b.HooksAt("first", false)[0].Undo != nil {
		t.Error("an undo handler is missing or unexpected")
	}
	if err := b.Err(); err != nil {
		t.Error(err)
	}
}

// TestWhatCannotBeBound checks that Err returns the error of a hook that could not be bound, even if the caller ignores
// it.
func TestWhatCannotBeBound(t *testing.T) {
	nothing := func(*before) error { return nil }
	for name, c := range map[string]struct {
		bind func(*hook.Binder) error
		says string
	}{
		"unknown":     {func(b *hook.Binder) error { return hook.Before(b, absent, nothing) }, `no task "third" in this workflow: its tasks are first, second`},
		"elsewhere":   {func(b *hook.Binder) error { return hook.Before(b, otherWorkflow, nothing) }, "another workflow"},
		"nil":         {func(b *hook.Binder) error { return hook.Before(b, first, nil) }, "nil"},
		"nil handler": {func(b *hook.Binder) error { return hook.OnFailure[before](b, nil) }, "nil"},
		"two inverse": {func(b *hook.Binder) error { return hook.Before(b, first, nothing, nothing, nothing) }, "2 undo handlers"},
	} {
		t.Run(name, func(t *testing.T) {
			b := hook.NewBinder(first.Point(), second.Point()).SetRegistrar("part")
			if err := c.bind(b); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("bind = %v, want an error with %q", err, c.says)
			}
			if err := b.Err(); err == nil || !strings.Contains(err.Error(), "part") {
				t.Errorf("Err = %v, want an error with the registrar's name", err)
			}
		})
	}
}

// registrar is a part of a program that binds hooks.
type registrar struct {
	name string
	bind func(*hook.Binder) error
}

func (r registrar) Name() string { return r.name }

// TestBind checks that a registrar's own error is a problem, while Err returns the error of a hook that could not be
// bound.
func TestBind(t *testing.T) {
	own := registrar{"own", func(*hook.Binder) error { return errors.New("no licence") }}
	refused := registrar{"refused", func(b *hook.Binder) error { return hook.OnFailure[before](b, nil) }}
	provider := registrar{"provider", func(b *hook.Binder) error { return hook.OnFailure(b, func(*before) error { return nil }) }}
	bind := func(r registrar, b *hook.Binder) error { return r.bind(b) }

	b, problems := hook.Bind([]registrar{own, refused}, provider, []hook.Point{first.Point()}, bind)
	if len(problems) != 1 || problems[0].Message != "hooks of own: no licence" {
		t.Error(problems)
	}
	if err := b.Err(); err == nil || err.Error() != "binding a hook of refused to failures: the handler is nil" {
		t.Error(err)
	}
	if bound := b.OnFailure(); len(bound) != 1 || bound[0].Name != "provider-1" {
		t.Error(bound)
	}
	if b, _ := hook.Bind([]registrar{}, "no registrar", []hook.Point{first.Point()}, bind); b.OnFailure() != nil {
		t.Error("a provider that is not a registrar has bound a hook")
	}
}
