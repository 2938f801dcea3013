package aggregate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// facts counts the events of a log by their types.
type facts map[string]int

func (f facts) Apply(r eventlog.Record) error {
	for _, t := range r.Types() {
		f[t]++
	}
	return nil
}

// ExampleProjector shows a projector that replays the log into a view, and follows it from then on.
// A reader that has just appended waits for its commit.
func ExampleProjector() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
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

	view := facts{}
	p := aggregate.NewProjector(l, "facts", view, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()

	var last eventlog.Receipt
	for i, fact := range []string{"opened", "shut", "opened"} {
		last, err = l.Append(ctx, eventlog.Commit{
			Aggregate: eventlog.Aggregate{Kind: eventlog.KindRun, ID: "example/door"}, ID: fmt.Sprint(i), Expected: last.Seq,
			Events: []eventlog.Event{{Type: "dev.scute.run." + fact + ".v1", Time: time.Now(), Actor: "user/example", Data: json.RawMessage(`{}`)}},
		})
		if err != nil {
			panic(err)
		}
	}
	if err := p.WaitFor(ctx, last.Seq); err != nil {
		panic(err)
	}
	fmt.Println("up to", p.Position(), "opened", view["dev.scute.run.opened.v1"], "shut", view["dev.scute.run.shut.v1"])
	cancel()
	<-ended
	// Output:
	// up to 3 opened 2 shut 1
}
