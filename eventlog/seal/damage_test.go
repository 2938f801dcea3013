package seal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/highwayhash"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/seal"
)

const (
	// recordHeaderSize is the size of the head of a stored record: length (4), sequence (8), time
	// (8), length of the subject (2).
	recordHeaderSize = 22
	// checksumSize is the size of the checksum at the end of a record.
	checksumSize = 8
	// headerFlag is the bit in a record's length that is set if it has a header.
	headerFlag = 1 << 31
)

// disk is the folder of a stopped log, with its block file split into records.
type disk struct {
	dir     string
	records [][]byte
}

func (d *disk) block() string {
	return filepath.Join(d.dir, "jetstream", "$G", "streams", eventlog.StreamName, "msgs", "1.blk")
}

// readRecords splits the block file into records.
func (d *disk) readRecords(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(d.block())
	if err != nil {
		t.Fatal(err)
	}
	for len(text) > 0 {
		n := binary.LittleEndian.Uint32(text) &^ uint32(headerFlag)
		d.records, text = append(d.records, slices.Clone(text[:n])), text[n:]
	}
}

func (d *disk) write(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(d.block(), bytes.Join(d.records, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fixChecksum recomputes the checksum of a record, as an attacker could.
func fixChecksum(t *testing.T, r []byte) {
	t.Helper()
	key := sha256.Sum256([]byte(eventlog.StreamName + "-1"))
	h, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		t.Fatal(err)
	}
	subject := int(binary.LittleEndian.Uint16(r[20:]))
	_, _ = h.Write(r[4:20])
	_, _ = h.Write(r[recordHeaderSize : recordHeaderSize+subject])
	_, _ = h.Write(r[recordHeaderSize+subject+4 : len(r)-checksumSize])
	copy(r[len(r)-checksumSize:], h.Sum(nil))
}

// newSealedDisk returns a stopped log of twelve sealed commits.
func newSealedDisk(t *testing.T) (*disk, *seal.Tree, seal.Checkpoint) {
	t.Helper()
	d := &disk{dir: t.TempDir()}
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: d.dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		id := fmt.Sprintf("m%02d", i)
		if _, err := l.Append(t.Context(), eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}, ID: id, Events: []eventlog.Event{{
			Type: "dev.scute.move.started.v1", Time: time.Unix(int64(i+1), 0), Data: []byte(`{"cluster":"prod"}`),
		}}}); err != nil {
			t.Fatal(err)
		}
	}
	key, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := seal.OpenSealer(t.TempDir(), l, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c, _, err := s.Seal(t.Context())
	if err != nil || c.Size != 12 {
		t.Fatal(c, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	d.readRecords(t)
	return d, s.Tree(), c
}

// clone returns a copy of the disk in another folder.
func (d *disk) clone(t *testing.T) *disk {
	t.Helper()
	c := &disk{dir: t.TempDir()}
	if err := embedded.CopyFolder(d.dir, c.dir); err != nil {
		t.Fatal(err)
	}
	for _, r := range d.records {
		c.records = append(c.records, slices.Clone(r))
	}
	return c
}

// findings returns the findings of a verification of the disk, as the server reads it.
func (d *disk) findings(t *testing.T, want seal.Checkpoint, tree *seal.Tree) string {
	t.Helper()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: d.dir, AllowDamaged: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	v := seal.NewVerifier(want, nil, tree)
	if err := l.Scan(t.Context(), v.Add); err != nil {
		t.Fatal(err)
	}
	r, err := v.Report()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(r.Findings)
}

// TestDamage damages the files of a stopped log in various ways, starts the server on them, and checks the findings of
// the verification.
func TestDamage(t *testing.T) {
	original, tree, want := newSealedDisk(t)
	const victim = 5 // the commit with sequence 6
	subject := int(binary.LittleEndian.Uint16(original.records[victim][20:]))
	at := func(text string) int { return bytes.Index(original.records[victim], []byte(text)) }
	flip := func(pos int, forged bool) func(*testing.T, *disk) {
		return func(t *testing.T, d *disk) {
			d.records[victim][pos] ^= 1
			if forged {
				fixChecksum(t, d.records[victim])
			}
			d.write(t)
		}
	}
	type damage struct {
		name string
		do   func(*testing.T, *disk)
		// says is contained in the findings.
		says string
	}
	cases := []damage{
		{"nothing", func(*testing.T, *disk) {}, "[]"},
		{"the index", func(t *testing.T, d *disk) {
			path := filepath.Join(filepath.Dir(d.block()), "index.db")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text[len(text)/2] ^= 1
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "[]"},
		{"the tail cut off", func(t *testing.T, d *disk) { d.records = d.records[:8]; d.write(t) }, "[missing 9-12]"},
		{"cut in a record", func(t *testing.T, d *disk) { d.records[8] = d.records[8][:40]; d.records = d.records[:9]; d.write(t) }, "[missing 9-12]"},
		{"one removed", func(t *testing.T, d *disk) { d.records = slices.Delete(d.records, victim, victim+1); d.write(t) }, "missing 6"},
		{"two exchanged", func(t *testing.T, d *disk) {
			a, b := d.records[3], d.records[victim]
			seq := slices.Clone(a[4:12])
			copy(a[4:12], b[4:12])
			copy(b[4:12], seq)
			fixChecksum(t, a)
			fixChecksum(t, b)
			d.records[3], d.records[victim] = b, a
			d.write(t)
		}, "[changed 4 changed 6]"},
		{"a forged tail", func(t *testing.T, d *disk) {
			for _, r := range d.records[9:] {
				copy(r[bytes.Index(r, []byte("prod")):], "evil")
				fixChecksum(t, r)
			}
			d.write(t)
		}, "[changed 10-12]"},
		{"deleted and written again", func(t *testing.T, d *disk) {
			other, _, _ := newSealedDisk(t)
			d.dir = other.dir
		}, "[changed 1-12]"},
	}
	for name, pos := range map[string]int{
		"length": 0, "sequence": 4, "time": 12, "length of the subject": 20, "subject": recordHeaderSize + subject - 1, "length of the header": recordHeaderSize + subject,
		"header's first line": at("NATS/1.0"), "header's name": at("ce-actor") + 0, "header's value": at("dev.scute.move"), "line end": at("NATS/1.0") + 8,
		"data": at(`{"cluster"`) + 14, "checksum": len(original.records[victim]) - 1,
	} {
		if pos < 0 {
			pos = at("ce-id")
		}
		says := "missing 6"
		if name == "length of the header" {
			says = "[changed 6]" // the server's checksum does not cover it
		}
		cases = append(cases, damage{"a bit of the " + name, flip(pos, false), says})
		if !strings.HasPrefix(name, "length") && name != "checksum" && name != "sequence" {
			cases = append(cases, damage{"a bit of the " + name + ", forged", flip(pos, true), "[changed 6]"})
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := original.clone(t)
			c.do(t, d)
			if got := d.findings(t, want, tree); !strings.Contains(got, c.says) {
				t.Errorf("findings = %s, want %s", got, c.says)
			}
		})
	}
}
