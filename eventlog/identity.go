package eventlog

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// identityKey is where the stream's metadata holds the log's ID.
const identityKey = "scute.dev/log-id"

// identityBytes is the number of bytes of an ID. In hexadecimal it fits into a label, an annotation and a line.
const identityBytes = 8

// ID returns the log's ID. It is created with the stream and does not change; a copy of the log has the same ID. Annotations outside the log
// contain it, so that a daemon ignores annotations of another log.
func (l *Log) ID() string { return l.id }

// newID returns a random ID for a new stream.
func newID() string {
	b := make([]byte, identityBytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// identity returns the ID of a stream. For a stream without an ID it derives one from the name and the creation time, so that two writers that open
// it at the same time derive the same ID.
func identity(info *jetstream.StreamInfo) string {
	if id := info.Config.Metadata[identityKey]; id != "" {
		return id
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s", info.Config.Name, info.Created.UTC().Format(time.RFC3339Nano)))
	return hex.EncodeToString(sum[:identityBytes])
}
