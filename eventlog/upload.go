package eventlog

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/mod/semver"
)

const (
	uploadChunk = 64 << 10
	// uploadTimeout limits the upload of one chunk. uploadEnd limits the server's work after the last
	// chunk.
	uploadTimeout = time.Minute
	uploadEnd     = 5 * time.Minute
)

// archiveVersion is the first version of the server that restores an archive of messages
// (NATSARC1). Earlier versions restore copies of a server's files.
const archiveVersion = "v2.15"

// upload creates a stream from a source with the server's restore call, because no other call keeps
// the sequences and the times. It returns when all replicas have the stream.
func upload(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, config jetstream.StreamConfig, r RestoreSource) error {
	if err := checkVersion(nc.ConnectedServerVersion()); err != nil {
		return err
	}
	replicas := config.Replicas
	config.Replicas = 1
	request, err := json.Marshal(struct {
		Config jetstream.StreamConfig `json:"config"`
		State  jetstream.StreamState  `json:"state"`
	}{config, jetstream.StreamState{Msgs: r.Last, FirstSeq: min(r.Last, 1), LastSeq: r.Last}})
	if err != nil {
		return err
	}
	var begun struct {
		Subject string `json:"deliver_subject"`
	}
	if err := sendRequest(ctx, nc, requestTimeout, "$JS.API.STREAM.RESTORE."+config.Name, request, &begun); err != nil {
		return fmt.Errorf("beginning the restore of stream %s: %w", config.Name, err)
	}
	chunks := bufio.NewWriterSize(chunkWriter{ctx: ctx, nc: nc, subject: begun.Subject}, uploadChunk)
	if err := r.Archive(ctx, chunks); err != nil {
		return err
	}
	if err := chunks.Flush(); err != nil {
		return err
	}
	if err := sendRequest(ctx, nc, uploadEnd, begun.Subject, nil, nil); err != nil {
		return fmt.Errorf("ending the upload to stream %s: %w", config.Name, err)
	}
	if replicas > 1 {
		return replicate(ctx, nc, js, config.Name, replicas, r.OnWait)
	}
	return nil
}

func checkVersion(version string) error {
	if v := semver.MajorMinor("v" + version); v != "" && semver.Compare(v, archiveVersion) < 0 {
		return fmt.Errorf("%w: the NATS server is of version %s: a log is restored to %s or later; upgrade the server", ErrConfig, version, archiveVersion[1:])
	}
	return nil
}

// chunkWriter sends data to the server, and waits until the server has stored each chunk.
type chunkWriter struct {
	ctx     context.Context //nolint:containedctx // an io.Writer has no other way to get a deadline
	nc      *nats.Conn
	subject string
}

func (c chunkWriter) Write(p []byte) (n int, err error) {
	for chunk := range slices.Chunk(p, uploadChunk) {
		if err := sendRequest(c.ctx, c.nc, uploadTimeout, c.subject, chunk, nil); err != nil {
			return n, fmt.Errorf("sending a part of the log: %w", err)
		}
		n += len(chunk)
	}
	return n, nil
}

func sendRequest(ctx context.Context, nc *nats.Conn, patience time.Duration, subject string, request []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reply, err := nc.RequestWithContext(ctx, subject, request)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if len(reply.Data) == 0 {
		return nil
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &failed); err != nil {
		return fmt.Errorf("decoding the server's answer: %w", err)
	}
	if failed.Error != nil {
		return fmt.Errorf("%w: the server refused it: %w", ErrUnavailable, failed.Error)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(reply.Data, answer)
}

const (
	// replicationRate is the slowest accepted rate at which servers copy a stream, in bytes per
	// second. The wait is limited to the size of the stream divided by this rate, plus
	// replicationTimeout.
	replicationRate = 1 << 20
	// replicationTimeout is the constant part of the limit on the wait. It also limits how long a
	// server may be offline during the wait.
	replicationTimeout = time.Minute
)

// replicate increases the replicas of a stream from one to replicas, and returns when each server
// has the whole stream. The upload itself uses one replica: with several, it would be acknowledged
// as soon as one server has the stream, and if that server failed, the others could not continue.
// waiting may be nil.
func replicate(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, name string, replicas int, waiting func(what string)) error {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return translateError(name, err)
	}
	info := stream.CachedInfo()
	config := info.Config
	config.Replicas = replicas
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("%w: giving stream %s %d replicas: %w", ErrUnavailable, name, replicas, err)
	}
	patience := replicationTimeout + time.Duration(info.State.Bytes/replicationRate)*time.Second //nolint:gosec // no stream is so large
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	what := fmt.Sprintf("for all %d servers of stream %s", replicas, name)
	if waiting == nil {
		waiting = func(string) {}
	}
	waiting(what)
	lacking := errors.New("no server has answered")
	online := time.Now()
	err = backoff.Retry(func() error {
		var now replicaStatus
		if err := sendRequest(ctx, nc, requestTimeout, "$JS.API.STREAM.INFO."+name, nil, &now); err != nil {
			return err
		}
		lacking = now.check(replicas)
		if lacking != nil {
			waiting(fmt.Sprintf("%s: %v", what, lacking))
		}
		if !errors.Is(lacking, errOffline) {
			online = time.Now()
		} else if time.Since(online) > replicationTimeout {
			return backoff.Permanent(lacking)
		}
		return lacking
	}, backoff.WithContext(newBackOff(0), ctx))
	if err != nil {
		return fmt.Errorf("%w: stream %s is not on all its %d servers: %w; run the command again when they are available", ErrUnavailable, name, replicas, lacking)
	}
	return nil
}

var errOffline = errors.New("offline")

// replicaStatus is the part of the server's answer that describes the replicas of a stream. Desired
// is set until each added server has the whole stream.
type replicaStatus struct {
	Cluster struct {
		Leader   string               `json:"leader"`
		Desired  json.RawMessage      `json:"desired"`
		Replicas []jetstream.PeerInfo `json:"replicas"`
	} `json:"cluster"`
}

// check returns nil if all servers have the whole stream. Otherwise the error says why one of them
// does not.
func (r replicaStatus) check(replicas int) error {
	for _, p := range r.Cluster.Replicas {
		switch {
		case p.Offline:
			return fmt.Errorf("server %s is %w", p.Name, errOffline)
		case !p.Current:
			return fmt.Errorf("server %s is behind", p.Name)
		}
	}
	switch have := len(r.Cluster.Replicas) + 1; {
	case r.Cluster.Leader == "":
		return errors.New("it has no leader")
	case have != replicas:
		return fmt.Errorf("%d of %d servers have it", have, replicas)
	case len(r.Cluster.Desired) > 0:
		return errors.New("a server is still copying it")
	}
	return nil
}
