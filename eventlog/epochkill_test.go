package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// playCloser appends to the log in os.Args[1] and closes its epoch, again and again. It prints the sequence and the ID of each commit
// that was acknowledged. With os.Args[2], it kills itself when a closing reaches that step.
func playCloser() {
	ctx := context.Background()
	l, err := embedded.Open(ctx, embedded.Options{Dir: os.Args[1]})
	if err != nil {
		fmt.Println("fail", err)
		os.Exit(1)
	}
	if len(os.Args) > 2 {
		l.OnClosing(func(step string) {
			if step == os.Args[2] {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		})
	}
	var records []eventlog.Record
	err = persist(ctx, func() (err error) { records, err = l.Read(ctx, moveOf("a"), 0); return err })
	for n := len(records); err == nil; n++ {
		last := uint64(0)
		if n > 0 {
			last = records[n-1].Seq
		}
		c := commit(moveOf("a"), fmt.Sprint(n), last, 1)
		var r eventlog.Receipt
		if err = persist(ctx, func() (err error) { r, err = l.Append(ctx, c); return err }); err == nil {
			fmt.Println("ack", r.Seq, c.ID)
			records = append(records, eventlog.Record{Seq: r.Seq})
			err = persist(ctx, func() error {
				return l.CloseEpoch(ctx, eventlog.Closing{Actor: "user/closer", Reason: "full", Time: decided})
			})
		}
	}
	fmt.Println("fail", err)
	os.Exit(1)
}

// persist tries again while the log cannot be reached, on a machine that is busy with other things. A closing that was tried before may
// have been ended since.
func persist(ctx context.Context, try func() error) error {
	for {
		err := try()
		if errors.Is(err, eventlog.ErrEmptyEpoch) {
			return nil
		}
		if !errors.Is(err, eventlog.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
	}
}

// closingSteps are the places at which a closing is killed.
var closingSteps = []string{"narrowed", "said", "sealed", "created", "opened"}

// TestKilledWhileClosing: a closing that a death cut off at any step is ended by the next process, for the reason of the first.
func TestKilledWhileClosing(t *testing.T) {
	for _, step := range closingSteps {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			c := startChild(t, "close", dir, step)
			acked := acknowledgedBy(t, c, nil)
			l := openTest(t, embedded.Options{Dir: dir})
			listed, err := l.Epochs(t.Context())
			if err != nil || len(listed) != 2 || !listed[0].Closed || listed[1].Closed {
				t.Fatalf("%+v, %v", listed, err)
			}
			boundaries(t, l, listed)
			for seq := range uint64(2) {
				r, err := l.At(t.Context(), 2+seq)
				if err != nil {
					t.Fatal(err)
				}
				if events, err := r.Events(); err != nil || events[0].Actor != "user/closer" || !events[0].Time.Equal(decided) {
					t.Errorf("%+v, %v", events, err)
				}
			}
			if got := mustAppend(t, l, commit(moveOf("a"), "1", 1, 1)); got != 4 {
				t.Errorf("stored at %d", got)
			}
			verifyCrash(t, copied(t, dir, l), acked)
		})
	}
}

// copied closes a log, so that another process can open it.
func copied(t *testing.T, dir string, l *eventlog.Log) string {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestKillWhileEpochsAreClosed kills a process that does little else than to close epochs, at any moment, and every other one after it has
// closed one. What was acknowledged is there, and each epoch begins where the one before ends.
func TestKillWhileEpochsAreClosed(t *testing.T) {
	begin, dir := time.Now(), t.TempDir()
	acked := map[string]uint64{}
	kills := 0
	for ; kills < 60 && (kills < 5 || time.Since(begin) < 20*time.Second); kills++ {
		c := startChild(t, "close", dir)
		acknowledgedBy(t, c, func(acks int) {
			if acks == 1+kills%2 {
				go func() {
					time.Sleep(rand.N(60 * time.Millisecond))
					_ = c.cmd.Process.Kill()
				}()
			}
		}, acked)
	}
	verifyCrash(t, dir, acked)
	l := openTest(t, embedded.Options{Dir: dir})
	listed, err := l.Epochs(t.Context())
	if err != nil || len(listed) < 2 {
		t.Fatalf("%d epochs, %v", len(listed), err)
	}
	boundaries(t, l, listed)
	t.Logf("%d kills, %d epochs, %d commits acknowledged", kills, len(listed), len(acked))
}

// acknowledgedBy reads what a child says until it is dead.
func acknowledgedBy(t *testing.T, c *child, each func(acks int), into ...map[string]uint64) map[string]uint64 {
	t.Helper()
	acked := map[string]uint64{}
	if len(into) > 0 {
		acked = into[0]
	}
	acks := 0
	for c.lines.Scan() {
		verb, rest, _ := strings.Cut(c.lines.Text(), " ")
		var seq uint64
		var id string
		if _, err := fmt.Sscan(rest, &seq, &id); verb != "ack" || err != nil {
			t.Fatalf("the child said %q", c.lines.Text())
		}
		acked["a "+id] = seq
		if acks++; each != nil {
			each(acks)
		}
	}
	c.kill()
	return acked
}
