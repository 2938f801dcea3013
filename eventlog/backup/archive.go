package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
)

// blockBytes is the size of the data in one compressed block. While the server writes and syncs the
// several hundred messages of a block, it reads nothing. It aborts a restore after five seconds
// without data.
const blockBytes = 64 << 10

// eachCommit calls fn with each commit, in order. It stops at the first error of fn, and returns
// that error.
type eachCommit func(ctx context.Context, fn func(eventlog.Record) error) error

// Archive returns a function that writes the commits 1 to last as a snapshot of a stream: the state
// of the stream, its messages, and an empty entry at the end (nats-server, package archive).
func Archive(last uint64, each eachCommit) func(ctx context.Context, w io.Writer) error {
	return func(ctx context.Context, w io.Writer) error {
		state := jetstream.StreamState{Msgs: last, FirstSeq: min(last, 1), LastSeq: last}
		packed := s2.NewWriter(w, s2.WriterBlockSize(blockBytes), s2.WriterConcurrency(1))
		if err := pack(ctx, packed, state, each); err != nil {
			return err
		}
		return packed.Close()
	}
}

func pack(ctx context.Context, w io.Writer, state jetstream.StreamState, each eachCommit) error {
	out := archive.NewWriter(w)
	entry := func(h archive.Header, parts ...[]byte) error {
		if err := out.WriteHeader(&h); err != nil {
			return err
		}
		for _, p := range parts {
			if _, err := out.Write(p); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := json.Marshal(state)
	if err == nil {
		err = entry(archive.Header{Name: "state.json", Timestamp: time.Now().UnixNano(), PayloadSize: int64(len(text))}, text)
	}
	if err == nil {
		err = each(ctx, func(c eventlog.Record) error {
			header := encodeHeader(c.Header())
			return entry(archive.Header{
				Name: c.Subject(), Sequence: c.Seq, Timestamp: c.Stored.UnixNano(), HeaderSize: int64(len(header)), PayloadSize: int64(len(c.Data())),
			}, header, c.Data())
		})
	}
	if err == nil {
		err = entry(archive.Header{})
	}
	return errors.Join(err, out.Flush())
}

// encodeHeader returns a header in wire format. It sorts the names, because no client keeps the
// order in which they were stored.
func encodeHeader(h map[string][]string) []byte {
	if len(h) == 0 {
		return nil
	}
	b := []byte("NATS/1.0\r\n")
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			b = fmt.Appendf(b, "%s: %s\r\n", name, value)
		}
	}
	return append(b, '\r', '\n')
}
