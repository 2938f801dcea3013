package eventlog_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// forbiddenRequests lists requests that no user of the example may make: each would change or
// delete commits, or read outside the log.
var forbiddenRequests = []string{
	"$JS.API.STREAM.DELETE.SCUTE", "$JS.API.STREAM.PURGE.SCUTE", "$JS.API.STREAM.MSG.DELETE.SCUTE", "$JS.API.STREAM.RESTORE.SCUTE",
	"$JS.API.STREAM.SNAPSHOT.SCUTE", "$JS.API.STREAM.LEADER.STEPDOWN.SCUTE", "$JS.API.STREAM.PEER.REMOVE.SCUTE", "$JS.API.STREAM.CREATE.OTHER",
	"$JS.API.STREAM.LIST", "$JS.API.CONSUMER.DELETE.SCUTE.siem", "$JS.API.CONSUMER.PAUSE.SCUTE.siem",
	"$JS.API.META.LEADER.STEPDOWN", "$JS.API.ACCOUNT.PURGE.G", "_INBOX.other", "other",
}

// TestUsersOfTheExample checks that each user of docs/examples/nats has the permissions of its role, and no others.
func TestUsersOfTheExample(t *testing.T) {
	dir := t.TempDir()
	certs := makeCertificates(t, dir, "scute-daemon", "scute-operator", "scute-archivist", "scute-auditor", "siem")
	srv := exampleServer(t, dir)
	warnings := make(lineWriter, 100)
	logger := slog.New(slog.NewTextHandler(warnings, &slog.HandlerOptions{Level: slog.LevelWarn}))
	as := func(name string) eventlog.ExternalOptions {
		return eventlog.ExternalOptions{URL: srv.ClientURL(), Create: name == "scute-daemon", Logger: logger, TLS: eventlog.TLSFiles{
			CA: certs.client.CA, Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key"),
		}}
	}
	stranger := as("scute-auditor")
	stranger.TLS = certs.client
	_, err := eventlog.Connect(t.Context(), stranger)
	wantErr(t, err, eventlog.ErrUnavailable)

	daemon := connectTest(t, as("scute-daemon"))
	mustAppend(t, daemon, commit(moveOf("a"), "1", 0, 2))
	operator := connectTest(t, as("scute-operator"))
	mustAppend(t, operator, commit(moveOf("a"), "2", 1, 1))
	auditor := connectTest(t, as("scute-auditor"))
	for name, l := range map[string]*eventlog.Log{"daemon": daemon, "operator": operator, "auditor": auditor} {
		if records, err := l.Read(t.Context(), moveOf("a"), 0); err != nil || len(records) != 2 {
			t.Errorf("%s: Read = %v, error %v, want 2 commits", name, records, err)
		}
		seen := 0
		if err := l.Scan(t.Context(), func(eventlog.Record) error { seen++; return nil }); err != nil || seen != 2 {
			t.Errorf("%s: Scan returned %d commits, error %v, want 2", name, seen, err)
		}
	}
	for len(warnings) > 0 {
		if w := <-warnings; strings.Contains(w, "permissions violation") {
			t.Errorf("a user requested something that it is not permitted and does not need: %s", w)
		}
	}
	_, err = auditor.Append(t.Context(), commit(moveOf("a"), "3", 2, 1))
	wantErr(t, err, eventlog.ErrPermission, `publish to "scute.log.move.a"`)
	larger := as("scute-daemon")
	larger.MaxBytes = 2 << 30
	connectTest(t, larger)

	consumeStream(t, as("siem"), 2)

	acknowledge := "$JS.ACK.SCUTE.siem.1.1.1.1.0"
	may := regexp.MustCompile(`^\$JS\.API\.STREAM\.(RESTORE|UPDATE|DELETE)\.`)
	archivist := as("scute-archivist")
	checkRefused(t, "scute-archivist", slices.DeleteFunc(append(forbiddenRequests[:len(forbiddenRequests):len(forbiddenRequests)], acknowledge, "$JS.API.STREAM.CREATE.SCUTE"), may.MatchString),
		archivist.URL, nats.RootCAs(archivist.TLS.CA), nats.ClientCert(archivist.TLS.Cert, archivist.TLS.Key))
	denied := map[string][]string{
		"scute-daemon": {acknowledge}, "scute-operator": append(writerOnlySubjects[1:], acknowledge), "scute-auditor": append(writerOnlySubjects, acknowledge),
		"siem": append(writerOnlySubjects, "$JS.API.CONSUMER.CREATE.SCUTE.other", "$JS.API.STREAM.MSG.GET.SCUTE"),
	}
	for name, more := range denied {
		o := as(name)
		checkRefused(t, name, append(more[:len(more):len(more)], forbiddenRequests...), o.URL, nats.RootCAs(o.TLS.CA), nats.ClientCert(o.TLS.Cert, o.TLS.Key))
	}
	if head, err := daemon.Head(t.Context()); err != nil || head != 2 {
		t.Errorf("Head = %d, error %v, want 2", head, err)
	}
	connectTest(t, archivist)
}

// lineWriter receives each line that a logger writes.
type lineWriter chan string

func (l lineWriter) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// TestArchivistRestores checks that the archivist of the example can restore a backup to a server without a log.
func TestArchivistRestores(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "archive")
	l := openTest(t, embedded.Options{Dir: t.TempDir()})
	mustAppend(t, l, commit(moveOf("a"), "1", 0, 2))
	m, err := backup.Write(t.Context(), l, archive, backup.Options{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certs := makeCertificates(t, dir, "scute-archivist")
	o := eventlog.ExternalOptions{URL: exampleServer(t, dir).ClientURL(), TLS: eventlog.TLSFiles{
		CA: certs.client.CA, Cert: filepath.Join(dir, "scute-archivist.crt"), Key: filepath.Join(dir, "scute-archivist.key"),
	}}
	if err := eventlog.RestoreExternal(t.Context(), o, backup.Source(archive, m, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if head, err := connectTest(t, o).Head(t.Context()); err != nil || head != 1 {
		t.Errorf("Head = %d, error %v, want 1", head, err)
	}
}

// writerOnlySubjects lists requests that an auditor may not make. An operator may make only the first of them.
var writerOnlySubjects = []string{"scute.log.move.a", "$JS.API.STREAM.CREATE.SCUTE", "$JS.API.STREAM.UPDATE.SCUTE"}

// consumeStream reads the stream with a durable consumer, as the guide does, and checks that a
// consumer cannot deliver into the log.
func consumeStream(t *testing.T, o eventlog.ExternalOptions, commits int) {
	t.Helper()
	nc, err := nats.Connect(o.URL, nats.RootCAs(o.TLS.CA), nats.ClientCert(o.TLS.Cert, o.TLS.Key))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	into := []byte(`{"stream_name":"SCUTE","config":{"name":"siem","durable_name":"siem","deliver_subject":"scute.log.move.a","ack_policy":"none"}}`)
	reply, err := nc.RequestWithContext(t.Context(), "$JS.API.CONSUMER.CREATE.SCUTE.siem", into)
	if err != nil || !strings.Contains(string(reply.Data), "cycle") {
		t.Errorf("creating a consumer that delivers into the log = %s, error %v, want an error about a cycle", reply.Data, err)
	}
	consumer, err := js.CreateOrUpdateConsumer(t.Context(), eventlog.StreamName, jetstream.ConsumerConfig{Durable: "siem", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := consumer.Fetch(commits)
	if err != nil {
		t.Fatal(err)
	}
	for m := range batch.Messages() {
		commits--
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if commits != 0 || batch.Error() != nil {
		t.Errorf("%d commits were not delivered, error %v", commits, batch.Error())
	}
}

// exampleServer runs the example's server with its files in dir.
func exampleServer(t *testing.T, dir string) *server.Server {
	t.Helper()
	example, err := os.ReadFile("../docs/examples/nats/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("0.0.0.0:4222", "127.0.0.1:-1", "/var/lib/nats", filepath.Join(dir, "store"),
		"/etc/nats/tls.", filepath.Join(dir, "server."), "/etc/nats/", dir+"/").Replace(string(example))
	path := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return logtest.Serve(t, o)
}

// checkRefused checks that the server refuses each request of a user.
func checkRefused(t *testing.T, user string, subjects []string, url string, as ...nats.Option) {
	t.Helper()
	violations := make(chan error, len(subjects))
	nc, err := nats.Connect(url, append(as, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { violations <- err }))...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, subject := range subjects {
		if err := errors.Join(nc.Publish(subject, nil), nc.FlushWithContext(ctx)); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-violations:
			if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), subject) {
				t.Errorf("request %s by %s: got %v, want a permission violation", subject, user, err)
			}
		case <-ctx.Done():
			t.Fatalf("request %s by %s was not refused", subject, user)
		}
	}
}
