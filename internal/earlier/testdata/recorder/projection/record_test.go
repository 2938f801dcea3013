package projection

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/eventlog/seal"
	"scute.dev/internal/audit"
	"scute.dev/internal/trust"
	"scute.dev/internal/usage"
	"scute.dev/projector"
)

// TestRecord adds the saved histories of real moves, runs and remediations, takes the daemon's snapshot, and seals the log.
func TestRecord(t *testing.T) {
	dir := os.Getenv("RECORD")
	l := logtest.OpenIn(t, dir)
	bound, err := trust.Commit(trust.Bound{Cluster: "earlier"}, "daemon/earlier", 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	for _, h := range load(t) {
		for h.append(t, l) {
		}
	}
	snapshot(t, l, dir)
	sealed(t, l, dir)
}

func snapshot(t *testing.T, l *eventlog.Log, dir string) {
	p := projector.New(l, New(usage.Limits{}), projector.Options{Name: Name, Program: "earlier", Snapshot: File(Folder(dir)), Every: 1})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	<-p.CaughtUp()
	stop()
	<-ended
}

func sealed(t *testing.T, l *eventlog.Log, dir string) {
	key, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.PEM()
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := seal.OpenSealer(filepath.Join(dir, seal.Folder), l, key)
	if err != nil {
		t.Fatal(err)
	}
	defer sealer.Close()
	c, signed, err := sealer.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.Public(l.ID())
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "..", "kept")
	place := audit.Folder{Path: kept}
	if err := place.Publish(t.Context(), audit.Publication{Checkpoint: c, Signed: signed, Key: public, At: time.Now(), Tree: sealer.Tree()}); err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string]string{filepath.Join(dir, "key.pem"): string(text), filepath.Join(kept, "key"): string(public) + "\n"} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
