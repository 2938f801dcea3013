package consume_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/export/consume"
)

// Example shows a consumer that fails at the second event, and resumes with that event when it runs again. It connects
// to the log of another process, and does not link a server.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "log-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	scuted := serveLog(dir)
	defer scuted.Close()

	log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: scuted.URL(), Token: "secret"})
	if err != nil {
		panic(err)
	}
	defer log.Close()
	enough := errors.New("enough")
	take := func(until string) func(context.Context, eventlog.CloudEvent) error {
		return func(_ context.Context, e eventlog.CloudEvent) error {
			fmt.Println(e.Sequence, e.Source, e.Type, string(e.Data))
			if e.Sequence == until {
				return enough
			}
			return nil
		}
	}
	position := consume.File(filepath.Join(dir, "position.json"))
	for _, until := range []string{"2", "3"} {
		c := &consume.Consumer{Log: log, Store: position, Deliver: take(until)}
		fmt.Println("ended:", errors.Is(c.Run(ctx), enough))
	}
	// Output:
	// 1 scute.dev/move/fleet_2fprod dev.scute.move.tested.v1 {"n":0}
	// 2 scute.dev/move/fleet_2fprod dev.scute.move.tested.v1 {"n":1}
	// ended: true
	// 2 scute.dev/move/fleet_2fprod dev.scute.move.tested.v1 {"n":1}
	// 3 scute.dev/move/fleet_2fprod dev.scute.move.tested.v1 {"n":2}
	// ended: true
}

// serveLog serves a log with three commits.
func serveLog(dir string) *eventlog.Log {
	l, err := embedded.Open(context.Background(), embedded.Options{Dir: filepath.Join(dir, "log"), Listen: "127.0.0.1:0", Token: "secret"})
	if err != nil {
		panic(err)
	}
	for n := range uint64(3) {
		if _, err := l.Append(context.Background(), eventlog.Commit{
			Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "fleet/prod"}, ID: fmt.Sprint(n), Expected: n,
			Events: []eventlog.Event{{Type: "dev.scute.move.tested.v1", Time: time.Now(), Actor: "user/example", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}},
		}); err != nil {
			panic(err)
		}
	}
	return l
}
