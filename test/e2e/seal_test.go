package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/evidence"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
)

// TestSealedLog checks that a daemon with a sealed log publishes checkpoints in the ConfigMap, that the log verifies
// while the daemon runs and after SIGKILL, and that a change of its files while the daemon is stopped is found.
func TestSealedLog(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	const ns, install = "sealed-log", scuted.Namespace
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	kept := t.TempDir()
	listen := ports.AddressForTest(t)
	o := &operator{namespace: ns, nats: "nats://" + listen}
	life := func() *scuted.Daemon {
		return harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Listen: listen, Args: []string{
			"--audit-key", install + "/scute-audit-key", "--audit-configmap", install + "/scute-audit", "--audit-folder", kept, "--audit-interval", "1s",
		}})
	}
	checkpoint, key := filepath.Join(t.TempDir(), "checkpoint"), filepath.Join(t.TempDir(), "key")
	// keep saves the published checkpoint as soon as it differs from before.
	keep := func(before string) string {
		for {
			var found corev1.ConfigMap
			err := shared.blue.Side.Client().Get(ctx, client.ObjectKey{Namespace: install, Name: "scute-audit"}, &found)
			if text := found.Data[evidence.CheckpointField]; err == nil && text != before {
				harness.Must(t, os.WriteFile(checkpoint, []byte(text), 0o600))
				harness.Must(t, os.WriteFile(key, []byte(found.Data[evidence.KeyField]), 0o600))
				return text
			}
			select {
			case <-ctx.Done():
				t.Fatalf("no new checkpoint in the ConfigMap: %v", err)
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	verify := func(ctx context.Context, code int, says string, where ...string) {
		t.Helper()
		o.run(ctx, t, code, []string{says}, append([]string{"audit", "verify", "--key", key, "--checkpoint", checkpoint}, where...)...)
	}

	d := life()
	question(ctx, t, shared.blue, ns, "first")
	untilRun(ctx, t, shared.blue, ns, "first", asks)
	first := keep("")
	verify(ctx, 0, "intact", "--nats", o.nats)
	harness.Must(t, d.Kill(ctx))

	d = life()
	question(ctx, t, shared.blue, ns, "second")
	untilRun(ctx, t, shared.blue, ns, "second", asks)
	keep(first)
	verify(ctx, 0, "intact", "--nats", o.nats)
	harness.Must(t, d.Stop(ctx))
	keep("")
	verify(ctx, 0, "intact", "--log", dir)

	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "$G", "streams", "*", "msgs", "1.blk"))
	harness.Must(t, err)
	block, err := os.ReadFile(blocks[0])
	harness.Must(t, err)
	// The message of the second run's approval.
	block[bytes.LastIndex(block, []byte("go on?"))] ^= 1
	harness.Must(t, os.WriteFile(blocks[0], block, 0o600))
	verify(ctx, 1, "missing", "--log", dir, "--hashes", kept)
}
