package provider_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// fakeKind is a kind that records what it is going to create.
type fakeKind struct {
	fails  bool
	undone []string
}

func (m *fakeKind) Validate(json.RawMessage) []workflow.Problem { return nil }

func (m *fakeKind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	if err := c.Prepare(ctx, "made by "+c.Key(), string(c.With) == `"there"`); err != nil {
		return nil, err
	}
	if m.fails {
		return nil, errors.New("half made")
	}
	return json.RawMessage(`"done"`), nil
}

func (m *fakeKind) Undo(_ context.Context, c *task.Call) error {
	m.undone = append(m.undone, string(c.Undo)+" "+string(c.Output))
	return nil
}

// attempt returns a call whose record outlives it.
func attempt(record *json.RawMessage, adopted *bool) *task.Call {
	return &task.Call{Run: "run", Task: "task", Undo: *record, Record: func(_ context.Context, undo json.RawMessage, a bool) error {
		*record, *adopted = undo, a
		return nil
	}}
}

// TestParts checks that a step is undone part by part, including a part that a crashed attempt has started.
func TestParts(t *testing.T) {
	var record json.RawMessage
	var adopted bool
	context := func() *provider.Context {
		c := provider.NewContext(t.Context(), attempt(&record, &adopted), &access.Clusters{})
		return &c
	}
	k := &fakeKind{}
	if _, err := context().Perform("one", k, "there"); err != nil || !adopted {
		t.Fatalf("Perform = %v, adopted %v", err, adopted)
	}
	c := context()
	if _, err := c.Perform("one", k, "there"); err != nil {
		t.Fatal(err)
	}
	k.fails = true
	if _, err := c.Perform("two", k, "new"); err == nil || adopted {
		t.Fatalf("Perform = %v, adopted %v", err, adopted)
	}
	c = context() // the next process
	if c.Started("one") || !c.Started("two") || c.Started("three") {
		t.Error("Began returned a wrong result")
	}
	for _, name := range []string{"three", "two", "one"} {
		if err := c.Revert(name, k, nil); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(k.undone, ", "); got != `"made by run/task@two" ` {
		t.Errorf("undone = %s", got)
	}
}

func TestNotes(t *testing.T) {
	var record json.RawMessage
	var adopted bool
	c := provider.NewContext(t.Context(), attempt(&record, &adopted), &access.Clusters{})
	var value string
	if found, err := c.Recorded("what", &value); found || err != nil {
		t.Fatal(found, err)
	}
	if err := c.Record("what", "it was so", false); err != nil {
		t.Fatal(err)
	}
	c = provider.NewContext(t.Context(), attempt(&record, &adopted), &access.Clusters{})
	if found, err := c.Recorded("what", &value); !found || err != nil || value != "it was so" {
		t.Fatal(found, err, value)
	}
}

// TestPartsNeedAPlace checks that a step that has waited acquires a worker before it performs or undoes a part, and
// does neither without one.
func TestPartsNeedAPlace(t *testing.T) {
	var record json.RawMessage
	var adopted bool
	call := attempt(&record, &adopted)
	waits, over := false, error(nil)
	call.Yield = func() { waits = true }
	call.Reacquire = func(ctx context.Context) error {
		if over == nil {
			waits = false
		}
		return cmp.Or(over, ctx.Err())
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := provider.NewContext(ctx, call, &access.Clusters{})
	k := &fakeKind{}
	c.YieldSlot()
	if _, err := c.Perform("one", k, "new"); err != nil || waits {
		t.Errorf("Perform = %v, waiting %v", err, waits)
	}
	over = errors.New("the attempt is over")
	c.YieldSlot()
	if _, err := c.Perform("two", k, "new"); !errors.Is(err, over) || c.Started("two") {
		t.Errorf("Perform without a worker = %v, want the error", err)
	}
	if err := c.Revert("one", k, nil); !errors.Is(err, over) || len(k.undone) > 0 {
		t.Errorf("Revert without a worker = %v, undone %v", err, k.undone)
	}
	over = nil
	cancel() // the context of the step, which may end before that of the attempt
	if _, err := c.Perform("three", k, "new"); !errors.Is(err, context.Canceled) {
		t.Errorf("Perform = %v, want context.Canceled", err)
	}
}
