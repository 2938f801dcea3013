package seal

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"

	"scute.dev/eventlog"
)

// golden compares text with a file, which UPDATE=1 writes. The files must never change: published checkpoints could no
// longer be verified.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestLeaf checks that the encoding and the hash of a message never change.
func TestLeaf(t *testing.T) {
	var out strings.Builder
	for _, m := range []eventlog.Record{
		eventlog.NewRecord(1, time.Unix(0, 1_800_000_000_123_456_789), "scute.log.move.fleet_2fprod", map[string][]string{
			"ce-specversion": {"1.0"}, "Nats-Msg-Id": {"move.fleet_2fprod/start-7"}, "ce-id": {"start-7/0"},
		}, []byte(`{"clusters":["prod"]}`)),
		eventlog.NewRecord(1<<40+2, time.Unix(0, -1), "scute.log.run.a", nil, nil),
		eventlog.NewRecord(3, time.Unix(1, 0), "x", map[string][]string{"a": {"2", "1", ""}, "B": {"é"}, "": nil}, []byte{0, 255}),
	} {
		var h Hasher
		hash := h.Hash(m)
		fmt.Fprintf(&out, "%d\n%shash %x\n\n", m.Seq, hex.Dump(AppendLeaf(nil, m)), hash[:])
	}
	golden(t, "leaf.golden", out.String())
}

// testKey returns a fixed key.
func testKey() Key { return newKey(ed25519.NewKeyFromSeed([]byte("only for the golden files: seed."))) }

// TestCheckpoint checks that the text of a checkpoint and of its key never change.
func TestCheckpoint(t *testing.T) {
	k := testKey()
	_, c := sealMessages(t, t.TempDir(), messages(5))
	signed, err := c.Sign(k)
	if err != nil {
		t.Fatal(err)
	}
	public, err := k.Public(c.LogID)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "checkpoint.golden", string(public)+"\n\n"+string(signed))
	got, err := OpenCheckpoint(signed, public)
	if err != nil || got != c {
		t.Errorf("OpenCheckpoint = %v, error %v; want %v", got, err, c)
	}
}

// TestCheckpointOfOthers checks that checkpoints are rejected that the key did not sign.
func TestCheckpointOfOthers(t *testing.T) {
	_, c := sealMessages(t, t.TempDir(), messages(5))
	k := testKey()
	public, err := k.Public(c.LogID)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.Sign(k)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	by, err := c.Sign(stranger)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := c
	elsewhere.LogID = "another"
	of, err := elsewhere.Sign(k)
	if err != nil {
		t.Fatal(err)
	}
	own, err := k.signer(c.LogID)
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := note.Sign(&note.Note{Text: elsewhere.body()}, own)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"of another log, with the key of this one": string(mixed),
		"nothing": "", "no signature": c.body(), "a stranger's": string(by), "of another log": string(of),
		"another size": strings.Replace(string(signed), "\n5\n", "\n4\n", 1), "cut": string(signed[:len(signed)-9]),
	} {
		if got, err := OpenCheckpoint([]byte(text), public); err == nil {
			t.Errorf("%s: OpenCheckpoint = %v, want an error", name, got)
		}
	}
}

// TestKeyIsNotPrinted checks that no format verb prints the key.
func TestKeyIsNotPrinted(t *testing.T) {
	k := testKey()
	secret := k.private().Seed()
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%q"} {
		for _, v := range []any{k, &k, struct{ k Key }{k}} {
			text := fmt.Sprintf(format, v)
			for _, leak := range []string{hex.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret), string(secret), fmt.Sprint(secret[:8])[1:20]} {
				if strings.Contains(text, leak) {
					t.Errorf("%s of %T prints the key: %s", format, v, text)
				}
			}
		}
	}
	_, err := ParseKey([]byte("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"))
	if err == nil || strings.Contains(err.Error(), "c2VjcmV0") {
		t.Errorf("ParseKey = %v, want an error without the text", err)
	}
	text, err := k.PEM()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseKey(text); err != nil || !again.private().Equal(k.private()) {
		t.Errorf("ParseKey of the PEM text = %v, want the same key", err)
	}
}
