package eventlog_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// TestWrongConfigurationIsNamed creates streams with one wrong field each, on a real server.
func TestWrongConfigurationIsNamed(t *testing.T) {
	host := openWithoutStream(t)
	ctx := withTimeout(t, time.Minute)
	for field, spoil := range map[string]func(*jetstream.StreamConfig){
		"Subjects":             func(c *jetstream.StreamConfig) { c.Subjects = []string{"scute.log.move.*"} },
		"Storage":              func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"Retention":            func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
		"Discard":              func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"DiscardNewPerSubject": func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject, c.MaxMsgsPerSubject = true, 5 },
		"MaxBytes":             func(c *jetstream.StreamConfig) { c.MaxBytes = -1 },
		"MaxMsgs":              func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 },
		"MaxMsgsPerSubject":    func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 },
		"MaxMsgSize":           func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 },
		"MaxAge":               func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"Duplicates":           func(c *jetstream.StreamConfig) { c.Duplicates = time.Minute },
		"FirstSeq":             func(c *jetstream.StreamConfig) { c.FirstSeq = 10 },
		"DenyDelete":           func(c *jetstream.StreamConfig) { c.DenyDelete = false },
		"AllowDirect":          func(c *jetstream.StreamConfig) { c.AllowDirect = false },
		"NoAck":                func(c *jetstream.StreamConfig) { c.NoAck = true },
		"AllowRollup":          func(c *jetstream.StreamConfig) { c.AllowRollup = true },
		"AllowMsgTTL":          func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true },
		"SubjectDeleteMarkerTTL": func(c *jetstream.StreamConfig) {
			c.SubjectDeleteMarkerTTL, c.AllowMsgTTL = time.Minute, true
		},
		"AllowMsgCounter": func(c *jetstream.StreamConfig) {
			c.AllowMsgCounter, c.Discard = true, jetstream.DiscardOld
		},
		"AllowMsgSchedules": func(c *jetstream.StreamConfig) {
			c.AllowMsgSchedules, c.Discard = true, jetstream.DiscardOld
		},
		"AllowAtomicPublish": func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = true },
		"AllowBatchPublish":  func(c *jetstream.StreamConfig) { c.AllowBatchPublish = true },
		"PersistMode":        func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"SubjectTransform": func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "scute.log.*.*", Destination: "other.{{wildcard(1)}}.{{wildcard(2)}}"}
		},
		"RePublish": func(c *jetstream.StreamConfig) {
			c.RePublish = &jetstream.RePublish{Source: "scute.log.*.*", Destination: "copy.{{wildcard(1)}}.{{wildcard(2)}}"}
		},
		"Sources": func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "OTHER"}} },
		"Mirror": func(c *jetstream.StreamConfig) {
			c.Mirror, c.Subjects, c.Discard = &jetstream.StreamSource{Name: "OTHER"}, nil, jetstream.DiscardNew
		},
	} {
		t.Run(field, func(t *testing.T) {
			config := eventlog.StreamConfig(field)
			spoil(&config)
			if _, err := host.JetStream().CreateStream(ctx, config); err != nil {
				t.Fatalf("the server does not accept the stream: %v", err)
			}
			defer deleteStream(t, host.JetStream(), field)
			for _, create := range []bool{false, true} {
				_, err := eventlog.ConnectTo(ctx, eventlog.ExternalOptions{URL: host.URL(), Create: create}, field)
				wantErr(t, err, eventlog.ErrConfig, field+" is ", "must be")
			}
		})
	}

	t.Run("Sealed", func(t *testing.T) {
		config := eventlog.StreamConfig("SEALED")
		if _, err := host.JetStream().CreateStream(ctx, config); err != nil {
			t.Fatal(err)
		}
		defer deleteStream(t, host.JetStream(), "SEALED")
		config.Sealed = true
		if _, err := host.JetStream().UpdateStream(ctx, config); err != nil {
			t.Fatal(err)
		}
		_, err := eventlog.ConnectTo(ctx, eventlog.ExternalOptions{URL: host.URL()}, "SEALED")
		wantErr(t, err, eventlog.ErrConfig, "Sealed is true")
	})

	t.Run("Replicas", func(t *testing.T) {
		if _, err := host.JetStream().CreateStream(ctx, eventlog.StreamConfig(eventlog.StreamName)); err != nil {
			t.Fatal(err)
		}
		defer deleteStream(t, host.JetStream(), eventlog.StreamName)
		_, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: host.URL(), Replicas: 3})
		wantErr(t, err, eventlog.ErrConfig, "Replicas is 1, must be 3 or more")
	})
}

// TestNoPlaceForTheStream checks that errors name what the server lacks, and what to do.
func TestNoPlaceForTheStream(t *testing.T) {
	srv := logtest.Serve(t, &server.Options{})
	_, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true, Replicas: 3})
	wantErr(t, err, eventlog.ErrConfig, "Replicas is 3, must be 1", "not part of a cluster")
	large := eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true, MaxBytes: 2 << 40}
	_, err = eventlog.Connect(t.Context(), large)
	wantErr(t, err, eventlog.ErrUnavailable, "MaxBytes is 2199023255552", "max_file", "lower the limit")
	err = eventlog.RestoreExternal(t.Context(), large, eventlog.RestoreSource{LogID: "a"})
	wantErr(t, err, eventlog.ErrUnavailable, "MaxBytes is 2199023255552", "max_file", "lower the limit")
}

// openWithoutStream returns a log on a server without a stream for the log's subjects.
func openWithoutStream(t *testing.T) *eventlog.Log {
	t.Helper()
	host := openTest(t, embedded.Options{Listen: "127.0.0.1:0"})
	// The server removes its folder of streams with the last stream, and a stream created at that moment fails. KEEP
	// avoids this.
	if _, err := host.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEEP", Subjects: []string{"keep"}}); err != nil {
		t.Fatal(err)
	}
	deleteStream(t, host.JetStream(), eventlog.StreamName)
	return host
}

func deleteStream(t *testing.T, js jetstream.JetStream, name string) {
	t.Helper()
	if err := js.DeleteStream(context.WithoutCancel(t.Context()), name); err != nil {
		t.Error(err)
	}
}

// TestTwoLogsInOneAccount checks that a NATS account has room for one log only, because all logs have the same
// subjects.
func TestTwoLogsInOneAccount(t *testing.T) {
	host := openTest(t, embedded.Options{Listen: "127.0.0.1:0"})
	_, err := eventlog.ConnectTo(t.Context(), eventlog.ExternalOptions{URL: host.URL(), Create: true}, "ANOTHER")
	wantErr(t, err, eventlog.ErrConfig, "ANOTHER", "another stream", "its own account")
}

// TestReaderChangesNothing checks that only a writer creates and resizes the stream.
func TestReaderChangesNothing(t *testing.T) {
	host := openWithoutStream(t)
	_, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: host.URL()})
	wantErr(t, err, eventlog.ErrMissing, host.URL(), "creates it")
	connectTest(t, eventlog.ExternalOptions{URL: host.URL(), Create: true, MaxBytes: 1 << 20})
	reader := connectTest(t, eventlog.ExternalOptions{URL: host.URL(), MaxBytes: 2 << 20})
	if s, err := reader.Stats(t.Context()); err != nil || s.MaxBytes != 1<<20 {
		t.Errorf("Stats = %+v, error %v, want MaxBytes 1 MiB", s, err)
	}
	connectTest(t, eventlog.ExternalOptions{URL: host.URL(), Create: true, MaxBytes: 2 << 20})
	if s, err := reader.Stats(t.Context()); err != nil || s.MaxBytes != 2<<20 {
		t.Errorf("Stats = %+v, error %v, want MaxBytes 2 MiB", s, err)
	}
}
