package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scute.dev/cmd/ui/feed"
	"scute.dev/cmd/ui/spool"
	"scute.dev/eventlog"
)

func TestWhereThePagesAreServed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*UIOptions)
		want   string // "" is accepted
	}{
		"none":                    {func(o *UIOptions) { o.Address = "" }, ""},
		"options of none":         {func(o *UIOptions) { o.Address, o.Hosts = "", []string{"a"} }, "need --ui-address"},
		"loopback":                {func(*UIOptions) {}, ""},
		"loopback of IPv6":        {func(o *UIOptions) { o.Address = "[::1]:8082" }, ""},
		"localhost":               {func(o *UIOptions) { o.Address = "localhost:8082" }, ""},
		"network":                 {func(o *UIOptions) { o.Address = ":8082" }, "--ui-tls-cert"},
		"network, by TLS":         {func(o *UIOptions) { o.Address, o.Cert, o.Key = ":8082", "c", "k" }, ""},
		"half a certificate":      {func(o *UIOptions) { o.Cert = "c" }, "go together"},
		"behind a proxy":          {func(o *UIOptions) { o.Address, o.PlainHTTP, o.Hosts = ":8082", true, []string{"a.example"} }, ""},
		"behind a proxy, no name": {func(o *UIOptions) { o.Address, o.PlainHTTP = ":8082", true }, "--ui-hosts"},
		"both":                    {func(o *UIOptions) { o.PlainHTTP, o.Hosts, o.Cert, o.Key = true, []string{"a"}, "c", "k" }, "exclude each other"},
		"no port":                 {func(o *UIOptions) { o.Address = "127.0.0.1" }, "HOST:PORT"},
		"any port":                {func(o *UIOptions) { o.Address = "127.0.0.1:0" }, "HOST:PORT"},
		"an empty name":           {func(o *UIOptions) { o.Hosts = []string{""} }, "empty entry"},
		"no session":              {func(o *UIOptions) { o.Session = 0 }, "--ui-session"},
		"no room":                 {func(o *UIOptions) { o.MaxBytes = 0 }, "--ui-max-bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			o := New()
			o.Log.Dir, o.UI.Address = "d", "127.0.0.1:8082"
			c.change(&o.UI)
			if err := o.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// breaking is a log of some commits that cannot be followed at first.
type breaking struct {
	commits int
	breaks  int
}

func (b *breaking) Replay(_ context.Context, after uint64, fn func(eventlog.Record) error) (uint64, error) {
	for seq := after + 1; seq <= uint64(b.commits); seq++ { //nolint:gosec // small
		if err := fn(eventlog.NewRecord(seq, time.Unix(0, 0), "another.program", nil, []byte("hi"))); err != nil {
			return seq, err
		}
	}
	return uint64(b.commits), nil //nolint:gosec // small
}

func (b *breaking) Floor() *eventlog.Floor { return nil }

func (b *breaking) Follow(ctx context.Context, _ uint64, _ func(eventlog.Record) error) error {
	if b.breaks--; b.breaks >= 0 {
		return errors.New("the connection broke")
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestTheCopyOfTheLog is not shown before it is whole, and says why it is not followed; it is followed again where it broke off.
func TestTheCopyOfTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		most int64
		want error
	}{"broken": {0, errUIBroken}, "full": {150, errUIFull}} {
		commits, err := spool.NewIn(t.TempDir(), c.most)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			log := &breaking{commits: 5, breaks: 1}
			copied := &copied{feed: feed.New(commits), log: log, logger: slog.New(slog.DiscardHandler)}
			copied.set(errUIReplays)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				copied.follow(ctx)
			}()
			synctest.Wait()
			if err := copied.unready(); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			log.commits = 7
			time.Sleep(uiRetry + time.Second) // of the bubble: nobody waits for it
			synctest.Wait()
			if err := copied.unready(); (err == nil) != (c.most == 0) || c.most == 0 && commits.Head() != 7 {
				t.Errorf("%s, later: %v, at commit %d", name, err, commits.Head())
			}
			stop()
			<-ended
		})
	}
}

// TestPagesThatCannotBeServed leave the rest of the daemon alone.
func TestPagesThatCannotBeServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		o, ended, logged := UIOptions{Address: "127.0.0.1:0", Cert: "/nowhere/tls.crt", Key: "/nowhere/tls.key"}, make(chan struct{}), &bytes.Buffer{}
		go func() {
			defer close(ended)
			o.keepServing(ctx, http.NotFoundHandler(), slog.New(slog.NewTextHandler(logged, nil)))
		}()
		time.Sleep(uiRetry + time.Second) // of the bubble: nobody waits for it
		synctest.Wait()
		stop()
		<-ended
		if strings.Count(logged.String(), "--ui-tls-cert") != 2 {
			t.Errorf("logged:\n%s", logged)
		}
	})
}
