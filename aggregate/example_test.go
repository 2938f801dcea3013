package aggregate_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// lampEvent is an event of a lamp, and lamp the state that its events are folded into.
type (
	lampEvent interface{ lampEvent() }
	switched  struct {
		On bool `json:"on"`
	}
	taken struct {
		By string `json:"by"`
	}

	lamp struct {
		on     bool
		holder string
	}
)

func (switched) lampEvent() {}
func (taken) lampEvent()    {}

func (l *lamp) ClaimedBy() string { return l.holder }

func (l *lamp) Apply(e lampEvent, _ time.Time) {
	switch e := e.(type) {
	case switched:
		l.on = e.On
	case taken:
		l.holder = e.By
	}
}

// ExampleRoot shows how a process claims an object before it acts on it. The previous owner notices when it next reads
// or appends.
func ExampleRoot() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "log-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	l, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	defer l.Close()

	catalog := eventlog.NewCatalog(eventlog.KindRun,
		eventlog.Define[lampEvent, switched]("switched", 1), eventlog.Define[lampEvent, taken]("taken", 1))
	open := func(actor string) *aggregate.Root[lampEvent, *lamp] {
		return &aggregate.Root[lampEvent, *lamp]{
			Log: l, Catalog: catalog, Name: eventlog.Aggregate{Kind: eventlog.KindRun, ID: "example/lamp"}, Actor: actor, State: new(lamp),
		}
	}

	old, next := open("old"), open("next")
	fmt.Println("old claims and acts:", old.Append(ctx, taken{By: "old"}, switched{On: true}))
	if err := next.Read(ctx); err != nil {
		panic(err)
	}
	fmt.Println("next reads:", next.State.on)
	fmt.Println("next claims:", next.Append(ctx, taken{By: "next"}))
	fmt.Println("old acts:", old.Append(ctx, switched{On: false}) != nil)
	fmt.Println("old reads:", old.Refresh(ctx, "old"))
	// Output:
	// old claims and acts: <nil>
	// next reads: true
	// next claims: <nil>
	// old acts: true
	// old reads: example/lamp: another process has claimed it: next
}
