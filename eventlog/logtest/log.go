package logtest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// Open opens an empty log in a new folder, and closes it when the test ends.
func Open(t testing.TB) *eventlog.Log {
	t.Helper()
	return OpenIn(t, t.TempDir())
}

// OpenIn opens the log in a folder, and closes it when the test ends.
func OpenIn(t testing.TB, dir string) *eventlog.Log {
	t.Helper()
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

// Serve starts a NATS server with JetStream, and stops it when the test ends. By default it uses a
// free port of this machine, a new folder, and space for every stream.
func Serve(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.JetStream, o.NoSigs, o.NoLog, o.JetStreamMaxStore = true, true, true, 1<<40
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	srv, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the server did not start")
	}
	return srv
}
