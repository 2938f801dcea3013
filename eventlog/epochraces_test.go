package eventlog_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestClosingBesideAnotherLimit: a daemon that starts gives the stream another limit, and writes with it what it read of the stream before
// somebody else began to close the epoch. The closing ends all the same, or fails and can be begun again; the log is never left sealed
// without a next epoch, and a follower loses nothing.
func TestClosingBesideAnotherLimit(t *testing.T) {
	for _, step := range []string{"narrowed", "narrowed, and seen", "said", "sealed"} {
		t.Run(step, func(t *testing.T) {
			srv := logtest.Serve(t, &server.Options{})
			o := eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true}
			first, second := connectTest(t, o), connectTest(t, o)
			mustAppend(t, first, commit(moveOf("a"), "1", 0, 1))
			stream, err := first.JetStream().Stream(t.Context(), "SCUTE")
			if err != nil {
				t.Fatal(err)
			}
			before := stream.CachedInfo().Config
			before.MaxBytes *= 2
			reached, seen, got := false, make(chan uint64, 10), make(chan error, 1)
			first.OnClosing(func(at string) {
				if wanted, _, _ := strings.Cut(step, ","); at == wanted && !reached {
					reached = true
					if _, err := second.JetStream().UpdateStream(t.Context(), before); (step == "sealed") != (err != nil) {
						t.Errorf("the limit is written: %v", err)
					}
					if step != wanted {
						if _, err := first.Head(t.Context()); err != nil {
							t.Error(err)
						}
					}
					if step == "said" {
						mustAppend(t, second, commit(moveOf("b"), "1", 0, 1))
					}
				}
				if at == "sealed" && step == "said" {
					ctx := within(t, time.Minute)
					go func() {
						got <- second.Follow(ctx, 0, func(r eventlog.Record) error {
							if seen <- r.Seq; r.Seq == 5 {
								return errors.New("all")
							}
							return nil
						})
					}()
					for seq := range seen {
						if seq == 3 { // what came after the commit that closes the epoch, while there is no next one
							break
						}
					}
				}
			})
			closing := eventlog.Closing{Actor: "user/test", Time: decided}
			err = first.CloseEpoch(t.Context(), closing)
			if step == "narrowed, and seen" {
				wantErr(t, err, eventlog.ErrUnavailable, "nothing was closed")
				err = first.CloseEpoch(t.Context(), closing)
			}
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, second, commit(moveOf("a"), "2", 1, 1))
			for _, l := range []*eventlog.Log{first, second, connectTest(t, o)} {
				if err := l.Health(t.Context()); err != nil {
					t.Error(err)
				}
				if all := strings.Join(replayed(t, l, 0), "\n"); strings.Count(all, "close/") != 1 || strings.Count(all, "open/") != 1 || !strings.HasSuffix(all, "move/a 2") {
					t.Error(all)
				}
			}
			if step == "said" {
				if err := <-got; !strings.Contains(err.Error(), "all") {
					t.Errorf("the follower: %v", err)
				}
			}
		})
	}
}
