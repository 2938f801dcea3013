package eventlog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// Example shows two writers of one aggregate. The second decision is based on an outdated state, so its append fails
// and stores nothing. The writer must read the aggregate and decide again.
func Example() {
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

	door := eventlog.Aggregate{Kind: eventlog.KindRun, ID: "example/door"}
	decide := func(id, fact string, expected uint64) error {
		_, err := l.Append(ctx, eventlog.Commit{Aggregate: door, ID: id, Expected: expected, Events: []eventlog.Event{{
			Type: "dev.scute.run." + fact + ".v1", Time: time.Now(), Actor: "user/example", Data: json.RawMessage(`{}`),
		}}})
		return err
	}
	fmt.Println("first: ", decide("1", "opened", 0))
	fmt.Println("second:", errors.Is(decide("2", "locked", 0), eventlog.ErrConflict))

	records, err := l.Read(ctx, door, 0)
	if err != nil {
		panic(err)
	}
	for _, r := range records {
		fmt.Println(r.Seq, r.Types())
	}
	// Output:
	// first:  <nil>
	// second: true
	// 1 [dev.scute.run.opened.v1]
}
