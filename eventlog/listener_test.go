package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

const (
	readerToken   = "a token of readers, long enough"
	operatorToken = "a token of operators, long enough"
)

// openWithAccess opens an embedded log that listens for clients with a token.
func openWithAccess(t *testing.T) (*eventlog.Log, *embedded.Access) {
	t.Helper()
	access := &embedded.Access{}
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Access: access})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	access.Set(embedded.Reader, readerToken)
	access.Set(embedded.Operator, operatorToken)
	return log, access
}

// TestListener checks that a token has the permissions of its role, and no others, and that clients without a valid
// token are denied.
func TestListener(t *testing.T) {
	log, _ := openWithAccess(t)
	mustAppend(t, log, commit(moveOf("a"), "1", 0, 2))
	operator := connectTest(t, eventlog.ExternalOptions{URL: log.URL(), Token: operatorToken})
	mustAppend(t, operator, commit(moveOf("a"), "2", 1, 1))
	reader := connectTest(t, eventlog.ExternalOptions{URL: log.URL(), Token: readerToken})
	for name, l := range map[string]*eventlog.Log{"operator": operator, "reader": reader} {
		if records, err := l.Read(t.Context(), moveOf("a"), 0); err != nil || len(records) != 2 {
			t.Errorf("%s: Read = %v, error %v, want 2 commits", name, records, err)
		}
		seen := 0
		if _, err := l.Replay(t.Context(), 0, func(eventlog.Record) error { seen++; return nil }); err != nil || seen != 2 {
			t.Errorf("%s: Replay returned %d commits, error %v, want 2", name, seen, err)
		}
		if stats, err := l.Stats(t.Context()); err != nil || stats.Commits != 2 {
			t.Errorf("%s: Stats = %+v, error %v, want 2 commits", name, stats, err)
		}
	}
	more := append(slices.Clone(forbiddenRequests), "$JS.ACK.SCUTE.siem.1.1.1.1.0", "_SCUTE.other")
	checkRefused(t, "reader", append(more, writerOnlySubjects...), log.URL(), nats.Token(readerToken))
	checkRefused(t, "operator", append(more, writerOnlySubjects[1:]...), log.URL(), nats.Token(operatorToken))
	for _, token := range []string{"", "another token of nobody at all"} {
		_, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: log.URL(), Token: token})
		wantErr(t, err, eventlog.ErrDenied)
		wantErr(t, err, eventlog.ErrUnavailable, "Authorization Violation")
	}
	if head, err := log.Head(t.Context()); err != nil || head != 2 {
		t.Errorf("Head = %d, error %v, want 2", head, err)
	}
}

// TestReaderListens checks that a reader can subscribe only to the responses to its own requests.
func TestReaderListens(t *testing.T) {
	log, _ := openWithAccess(t)
	for _, subject := range []string{">", "scute.log.>", "$JS.>", "$JS.EVENT.ADVISORY.>", "_SCUTE.>"} {
		violations := make(chan error, 1)
		nc, err := nats.Connect(log.URL(), nats.Token(readerToken), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { violations <- err }))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		if err := <-violations; !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("subscription to %s: got %v, want a permission violation", subject, err)
		}
		nc.Close()
	}
}

// connectRaw returns a connection with a token, for requests that scute itself does not make.
func connectRaw(t *testing.T, log *eventlog.Log, token string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(log.URL(), nats.Token(token))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// TestAnswersOfTheServer checks that a reader cannot append or delete, and an operator cannot delete, by naming a reply
// subject: the server publishes its replies with its own permissions.
func TestAnswersOfTheServer(t *testing.T) {
	log, _ := openWithAccess(t)
	mustAppend(t, log, commit(moveOf("a"), "1", 0, 1))
	for i, token := range []string{readerToken, operatorToken} {
		nc := connectRaw(t, log, token)
		sendRepliesToLog(t, nc, createPullConsumer(t, nc, "SCUTE"))
		mustAppend(t, log, commit(moveOf("a"), token, uint64(i+1), 1)) //nolint:gosec // 0 or 1
	}
	if n := len(replayAll(t, log, 0)); n != 3 {
		t.Errorf("the log has %d commits, want 3", n)
	}
}

// sendRepliesToLog requests replies into the log, and to subjects of the server's API. A reply with
// a status and no data would be a request to delete the stream.
func sendRepliesToLog(t *testing.T, nc *nats.Conn, consumer string) {
	t.Helper()
	for _, answer := range []string{"scute.log.move.b", "$JS.API.STREAM.PURGE.SCUTE", "$JS.API.STREAM.DELETE.SCUTE"} {
		for request, body := range map[string]string{
			"$JS.API.STREAM.INFO.SCUTE": "", "$JS.API.STREAM.MSG.GET.SCUTE": `{"seq":1}`, "$JS.API.DIRECT.GET.SCUTE": `{"seq":1}`,
			"$JS.API.DIRECT.GET.SCUTE.scute.log.move.nothing": "", "$JS.API.CONSUMER.MSG.NEXT.SCUTE." + consumer: `{"batch":9,"no_wait":true}`,
		} {
			if err := nc.PublishRequest(request, answer, []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The server replies in order, so this reply comes last.
	if _, err := nc.RequestWithContext(t.Context(), "$JS.API.STREAM.INFO.SCUTE", nil); err != nil {
		t.Fatal(err)
	}
}

// createPullConsumer creates a consumer as scute does, and returns its name.
func createPullConsumer(t *testing.T, nc *nats.Conn, stream string) string {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, InactiveThreshold: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return c.CachedInfo().Name
}

// TestConsumersOfRoles checks that a role can only create consumers that read and expire. It cannot create one that
// delivers into the log or is durable, nor change the consumer of another client, and the number of consumers is
// limited.
func TestConsumersOfRoles(t *testing.T) {
	log, _ := openWithAccess(t)
	mustAppend(t, log, commit(moveOf("a"), "1", 0, 1))
	nc := connectRaw(t, log, readerToken)
	name := createPullConsumer(t, nc, "SCUTE")
	ask := func(name, config string) string {
		t.Helper()
		request := fmt.Sprintf(`{"stream_name":"SCUTE","action":"","config":{"name":%q,"ack_policy":"none","mem_storage":true%s}}`, name, config)
		reply, err := nc.RequestWithContext(t.Context(), "$JS.API.CONSUMER.CREATE.SCUTE."+name, []byte(request))
		if err != nil {
			t.Fatal(err)
		}
		return string(reply.Data)
	}
	for _, config := range []string{
		`,"deliver_subject":"scute.log.2.move.b"`, `,"deliver_subject":"_INBOX.x"`, `,"durable_name":"x"`, `,"DURABLE_NAME":"x"`, `,"mem_storage":false`,
		`,"ack_policy":"explicit"`, `,"inactive_threshold":3600000000000`, `,"inactive_threshold":-1`, `,"pause_until":"2100-01-01T00:00:00Z"`, `,"unknown":1`,
		`,"metadata":{"a":"b"}`, `,"filter_subject":"scute.log.move.a"`,
	} {
		if answer := ask("x", config); !strings.Contains(answer, `"error"`) {
			t.Errorf("creating a consumer with %s = %s, want an error", config, answer)
		}
	}
	if answer := ask(name, `,"headers_only":true`); !strings.Contains(answer, `"error"`) {
		t.Errorf("update of another client's consumer = %s, want an error", answer)
	}
	made, answer := 0, ""
	for ; made < 2000; made++ {
		if answer = ask(fmt.Sprint("c", made), `,"inactive_threshold":120000000000`); strings.Contains(answer, `"error"`) {
			break
		}
	}
	if made > 900 || !strings.Contains(answer, "no other is created") {
		t.Errorf("after %d consumers: %s, want an error about the limit", made, answer)
	}
	if n := len(replayAll(t, log, 0)); n != 1 {
		t.Errorf("the log has %d commits, want 1", n)
	}
}

// TestRotation checks that no commit is missed, rejected or duplicated while tokens change.
func TestRotation(t *testing.T) {
	log, access := openWithAccess(t)
	var reading, operating atomic.Pointer[string]
	set := func(role embedded.Role, is *atomic.Pointer[string], token string) {
		access.Set(role, token)
		is.Store(&token)
	}
	set(embedded.Reader, &reading, readerToken)
	set(embedded.Operator, &operating, operatorToken)
	reader := connectTest(t, eventlog.ExternalOptions{URL: log.URL(), TokenFrom: func() string { return *reading.Load() }})
	operator := connectTest(t, eventlog.ExternalOptions{URL: log.URL(), TokenFrom: func() string { return *operating.Load() }})
	const commits = 300
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	followed := make(chan []uint64, 1)
	go func() {
		var seen []uint64
		_ = reader.Follow(ctx, 0, func(r eventlog.Record) error {
			if seen = append(seen, r.Seq); r.Seq == commits {
				cancel()
			}
			return nil
		})
		followed <- seen
	}()
	last := uint64(0)
	for i := range commits {
		switch i % 150 {
		case 50:
			set(embedded.Reader, &reading, fmt.Sprintf("the reader's token number %d", i))
		case 100:
			set(embedded.Operator, &operating, fmt.Sprintf("the operator's token number %d", i))
		}
		last = mustAppend(t, operator, commit(moveOf("a"), fmt.Sprint(i), last, 1))
	}
	seen := <-followed
	if last != commits || len(seen) != commits {
		t.Fatalf("appended %d commits and followed %d", last, len(seen))
	}
	for i, seq := range seen {
		if seq != uint64(i)+1 {
			t.Fatalf("followed %d and then %d", i, seq)
		}
	}
	for _, before := range []string{readerToken, operatorToken} {
		_, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: log.URL(), Token: before})
		wantErr(t, err, eventlog.ErrDenied)
	}
	access.Set(embedded.Reader, "")
	_, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: log.URL(), Token: *reading.Load()})
	wantErr(t, err, eventlog.ErrDenied)
}

// TestRotationClosesOnlyItsOwn checks that changing a token closes only the connections with that token.
func TestRotationClosesOnlyItsOwn(t *testing.T) {
	log, access := openWithAccess(t)
	closed := make(chan string, 4)
	for name, token := range map[string]string{"reader": readerToken, "operator": operatorToken} {
		nc, err := nats.Connect(log.URL(), nats.Token(token), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { closed <- name }))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
	}
	access.Set(embedded.Operator, operatorToken) // no change
	access.Set(embedded.Reader, "another token of the readers")
	if name := <-closed; name != "reader" {
		t.Errorf("the connection of the %s was closed first, want the reader's", name)
	}
	if head, err := log.Head(t.Context()); err != nil || head != 0 {
		t.Errorf("Head on the log's own connection = %d, error %v", head, err)
	}
	select {
	case name := <-closed:
		t.Errorf("the connection of the %s was closed", name)
	default:
	}
}
