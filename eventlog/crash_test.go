package eventlog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// crashWriters is the number of goroutines of the child that append concurrently, each to its own aggregate.
const crashWriters = 4

// runAppender appends to the log in os.Args[1] until it is killed. It prints these lines:
//
//	try AGGREGATE ID EXPECTED    before an append
//	ack AGGREGATE ID SEQ         after it
//
// It first appends the commits in the remaining arguments, which its predecessor tried without an acknowledgement.
func runAppender() {
	ctx := context.Background()
	l, err := embedded.Open(ctx, embedded.Options{Dir: os.Args[1]})
	if err != nil {
		fmt.Println("fail", err)
		os.Exit(1)
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	attempt := func(c eventlog.Commit) uint64 {
		say("try %s %s %d", c.Aggregate.ID, c.ID, c.Expected)
		r, err := l.Append(ctx, c)
		if err != nil {
			say("fail %v", err)
			os.Exit(1)
		}
		say("ack %s %s %d", c.Aggregate.ID, c.ID, r.Seq)
		return r.Seq
	}
	for _, pending := range os.Args[2:] {
		f := strings.Fields(pending)
		expected, _ := strconv.ParseUint(f[2], 10, 64)
		attempt(commit(moveOf(f[0]), f[1], expected, 1))
	}
	for w := range crashWriters {
		go func() {
			a := moveOf(fmt.Sprintf("w%d", w))
			var records []eventlog.Record
			if err := retryUnavailable(ctx, func() (err error) { records, err = l.Read(ctx, a, 0); return err }); err != nil {
				say("fail %v", err)
				os.Exit(1)
			}
			last := uint64(0)
			if n := len(records); n > 0 {
				last = records[n-1].Seq
			}
			for n := len(records); ; n++ {
				last = attempt(commit(a, fmt.Sprintf("c%d", n), last, 1+n%3))
			}
		}()
	}
	select {}
}

// TestKillLosesNothing kills an appending process hundreds of times, and checks that each acknowledged commit is stored
// exactly once, at the acknowledged sequence. On a slow machine it stops at 100 kills after 40 seconds; SCUTE_KILLS
// sets the number of kills, without a time limit.
func TestKillLosesNothing(t *testing.T) {
	kills, atLeast := 200, 100
	if s := os.Getenv("SCUTE_KILLS"); s != "" {
		kills, _ = strconv.Atoi(s)
		atLeast = kills
	}
	begin := time.Now()
	dir := t.TempDir()
	acked := map[string]uint64{} // "aggregate id" -> sequence
	var pending []string
	settled := 0
	done := 0
	for kill := 0; kill < kills && (kill < atLeast || time.Since(begin) < 40*time.Second); kill++ {
		done++
		c := startChild(t, "append", append([]string{dir}, pending...)...)
		// Every tenth child is killed while it starts, the others during their appends.
		after := rand.IntN(40)
		if kill%10 == 0 {
			go func() {
				time.Sleep(rand.N(30 * time.Millisecond))
				_ = c.cmd.Process.Kill()
			}()
			after = 1 << 30
		}
		tried := map[string]string{}
		for _, p := range pending {
			tried[aggregateAndID(p)] = p
		}
		acks := 0
		for c.lines.Scan() {
			verb, rest, _ := strings.Cut(c.lines.Text(), " ")
			switch verb {
			case "try":
				tried[aggregateAndID(rest)] = rest
			case "ack":
				f := strings.Fields(rest)
				seq, _ := strconv.ParseUint(f[2], 10, 64)
				if have, ok := acked[aggregateAndID(rest)]; ok && have != seq {
					t.Fatalf("kill %d: %s was acknowledged at %d and at %d", kill, aggregateAndID(rest), have, seq)
				}
				acked[aggregateAndID(rest)] = seq
				delete(tried, aggregateAndID(rest))
				acks++
			default:
				t.Fatalf("kill %d: unexpected line %q from the child", kill, c.lines.Text())
			}
			if acks > after {
				_ = c.cmd.Process.Kill()
			}
		}
		c.kill()
		pending = pending[:0]
		for _, p := range tried {
			pending = append(pending, p)
		}
		settled += len(pending)
		if kill%20 == 19 {
			verifyCrash(t, dir, acked)
		}
	}
	verifyCrash(t, dir, acked)
	t.Logf("%d kills, %d commits acknowledged, none missing or duplicated; %d commits without acknowledgement", done, len(acked), settled)
}

// aggregateAndID returns "aggregate id" of "aggregate id number".
func aggregateAndID(s string) string { return s[:strings.LastIndexByte(s, ' ')] }

// verifyCrash checks that each acknowledged commit is in the log, once.
func verifyCrash(t *testing.T, dir string, acked map[string]uint64) {
	t.Helper()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	stored := map[string]uint64{}
	if _, err := l.Replay(t.Context(), 0, func(r eventlog.Record) error {
		id := r.Aggregate.ID + " " + r.CommitID
		if at, twice := stored[id]; twice {
			t.Errorf("%s is stored at %d and at %d", id, at, r.Seq)
		}
		stored[id] = r.Seq
		_, err := r.Events()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for id, seq := range acked {
		if stored[id] != seq {
			t.Errorf("%s was acknowledged at %d, but is stored at %d", id, seq, stored[id])
		}
	}
}
