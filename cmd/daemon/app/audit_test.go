package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/eventlog/logtest"
	"scute.dev/eventlog/seal"
	"scute.dev/evidence"
)

// TestAuditFigures checks that there are metrics before the log is sealed for the first time, and for a destination
// that has not received a checkpoint, because an alert compares them.
func TestAuditFigures(t *testing.T) {
	s := &sealing{auditOptions: auditOptions{Witness: "https://witness.example.com"}}
	if got := gather(t, s); len(got) != 0 {
		t.Errorf("got metrics %v before it acts, want none", got)
	}
	s.since = time.Unix(1000, 0)
	const place = " witness https://witness.example.com"
	want := map[string]float64{}
	for _, name := range []string{" seal", place} {
		want["scute_audit_sequence"+name] = 0
		want["scute_audit_timestamp_seconds"+name] = 1000
		want["scute_audit_violated"+name] = 0
	}
	if diff := cmp.Diff(want, gather(t, s)); diff != "" {
		t.Errorf("without a key: %s", diff)
	}

	log := logtest.Open(t)
	key, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := seal.OpenSealer(t.TempDir(), log, key)
	if err != nil {
		t.Fatal(err)
	}
	defer sealer.Close()
	s.publisher = &evidence.Publisher{Log: log, Sealer: sealer}
	s.publisher.Publish(t.Context())
	got := gather(t, s)
	if got["scute_audit_timestamp_seconds seal"] <= 1000 || got["scute_audit_timestamp_seconds"+place] != 1000 {
		t.Errorf("after the first seal: got %v", got)
	}
}
