package eventlog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestLostEpoch: one epoch in the middle of a log is lost. Nobody takes what is before it for the whole, and no writer continues in its place.
func TestLostEpoch(t *testing.T) {
	for _, lost := range []string{"SCUTE_2", "SCUTE_3"} {
		for _, through := range []int{0, 1} {
			t.Run(fmt.Sprint(lost, " after a drop of ", through), func(t *testing.T) {
				o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
				writer := connectTest(t, o)
				archive := droppable(t, writer)
				writer.SettleAfter(0)
				if through > 0 {
					if err := dropThrough(t.Context(), writer, archive, through); err != nil {
						t.Fatal(err)
					}
				}
				deleteStream(t, writer.JetStream(), lost)
				before := streams(t, writer)
				for _, create := range []bool{false, true} {
					o.Create = create
					l, err := eventlog.Connect(t.Context(), o)
					wantErr(t, err, eventlog.ErrMissing, lost)
					if err == nil {
						l.Close()
					}
				}
				if after := streams(t, writer); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("the streams were %v, and are %v", before, after)
				}
			})
		}
	}
}

// noList is a server with a user who may do everything, and a writer who may not list streams.
func noList(t *testing.T) func(user string) eventlog.ExternalOptions {
	t.Helper()
	users := []*server.User{
		{Username: "all", Password: "x"},
		{Username: "writer", Password: "x", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{">"}, Deny: []string{"$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST"}}}},
	}
	url := logtest.Serve(t, &server.Options{Users: users}).ClientURL()
	return func(user string) eventlog.ExternalOptions {
		return eventlog.ExternalOptions{URL: strings.Replace(url, "nats://", "nats://"+user+":x@", 1), Create: true}
	}
}

// TestLostWithoutAList: a writer that may not list streams cannot know whether a part of the log is lost. It begins no log beside the rest of one,
// makes no epoch again, and says what it may not.
func TestLostWithoutAList(t *testing.T) {
	for _, c := range []struct {
		lost    string // "" is what is kept of dropped epochs
		through int    // dropped before that
	}{{"SCUTE", 0}, {"SCUTE_2", 0}, {"SCUTE_3", 0}, {"", 2}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			as := noList(t)
			all := connectTest(t, as("all"))
			archive := droppable(t, all)
			all.SettleAfter(0)
			if c.through > 0 {
				if err := dropThrough(t.Context(), all, archive, c.through); err != nil {
					t.Fatal(err)
				}
				c.lost = all.Floor().Stream
			}
			deleteStream(t, all.JetStream(), c.lost)
			before := streams(t, all)
			for user, want := range map[string]error{"writer": eventlog.ErrPermission, "all": eventlog.ErrMissing} {
				l, err := eventlog.Connect(t.Context(), as(user))
				wantErr(t, err, want)
				if err == nil {
					l.Close()
				}
				if after := streams(t, all); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("the streams were %v, and are %v", before, after)
				}
			}
		})
	}
}

// TestWriterWithoutAList: a log that is there is opened without a list, and not closed.
func TestWriterWithoutAList(t *testing.T) {
	as := noList(t)
	_, err := eventlog.Connect(t.Context(), as("writer"))
	wantErr(t, err, eventlog.ErrPermission, `publish to "$JS.API.STREAM.NAMES"`)
	connectTest(t, as("all"))
	l := connectTest(t, as("writer"))
	mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	wantErr(t, l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test"}), eventlog.ErrPermission, `publish to "$JS.API.STREAM.NAMES"`)
	mustAppend(t, l, commit(moveOf("a"), "2", 1, 1))
}

// TestCloseBesideAnother: another process closes the epoch between two looks of this one. Nobody is told to remove the stream in which the log
// continues.
func TestCloseBesideAnother(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	for i, look := range []string{"stream", "names"} {
		other := connectTest(t, o)
		mustAppend(t, other, commit(moveOf(look), "1", 0, 1))
		closing := false
		l, err := eventlog.ConnectHooked(t.Context(), o, func(what string) {
			if closing && strings.HasPrefix(what, look) {
				closing = false
				closeEpoch(t, other)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		closing = true
		if err := l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test", Epoch: i + 1}); err != nil || closing {
			t.Errorf("at %s: %v, closed by the other one %t", look, err, !closing)
		}
		if got, want := l.OpenStream(), fmt.Sprint("SCUTE_", i+2); got != want {
			t.Errorf("at %s: the log continues in %s, want %s", look, got, want)
		}
	}
}

// TestStreamOfALaterEpoch: beside a stream with the name of a later epoch no epoch is closed, because the log would be taken for one that lost epochs.
func TestStreamOfALaterEpoch(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	l := connectTest(t, o)
	mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	if _, err := l.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "SCUTE_4", Subjects: []string{"scute.log.4.*.*"}}); err != nil {
		t.Fatal(err)
	}
	wantErr(t, l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test"}), eventlog.ErrConfig, "stream SCUTE_4 exists")
	mustAppend(t, l, commit(moveOf("a"), "2", 1, 1))
	deleteStream(t, l.JetStream(), "SCUTE_4")
	if err := l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test"}); err != nil {
		t.Error(err)
	}
}

// TestDropsAtEachLookOfAnOpening: at each request of who opens a log that is whole, epochs are dropped. It is opened all the same, and again.
func TestDropsAtEachLookOfAnOpening(t *testing.T) {
	for _, create := range []bool{true, false} {
		for _, c := range []struct {
			before  int // dropped before it is opened
			look    string
			nth     int
			through int
		}{
			{0, "stream SCUTE", 1, 3},
			{0, "stream SCUTE", 2, 3},
			{0, "names", 1, 3},
			{0, "stream SCUTE_2", 1, 1},
			{0, "stream SCUTE_2", 1, 2},
			{0, "stream SCUTE_2", 1, 3},
			{0, "stream SCUTE_3", 1, 2},
			{0, "stream SCUTE_3", 1, 3},
			{0, "stream SCUTE_4", 1, 2},
			{0, "stream SCUTE_4", 1, 3},
			{1, "names", 1, 3},
			{1, "stream SCUTE_2", 1, 3},
			{1, "stream SCUTE_3", 1, 2},
			{1, "stream SCUTE_3", 1, 3},
			{1, "stream SCUTE_4", 1, 3},
		} {
			t.Run(fmt.Sprintf("%+v create %t", c, create), func(t *testing.T) {
				t.Parallel()
				o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
				writer := connectTest(t, o)
				archive := droppable(t, writer)
				writer.SettleAfter(0)
				if c.before > 0 {
					if err := dropThrough(t.Context(), writer, archive, c.before); err != nil {
						t.Fatal(err)
					}
				}
				o.Create = create
				seen := 0
				opened, err := eventlog.ConnectHooked(t.Context(), o, func(what string) {
					if what != c.look {
						return
					}
					if seen++; seen == c.nth {
						if err := dropThrough(t.Context(), writer, archive, c.through); err != nil {
							t.Error(err)
						}
					}
				})
				if err != nil || seen < c.nth {
					t.Fatalf("opened after %d looks: %v", seen, err)
				}
				defer opened.Close()
				if _, err := opened.Epochs(t.Context()); err != nil {
					t.Error(err)
				}
				o.Create = true
				again, err := eventlog.ConnectHooked(t.Context(), o, func(string) {}) // for which the server has written all
				if err != nil {
					t.Fatal(err)
				}
				defer again.Close()
				hasDropped(t, again, c.through)
			})
		}
	}
}
