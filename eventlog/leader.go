package eventlog

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// checkLeader returns ErrUnavailable if the stream has no leader. Without a leader a server answers with its own state, which changes and may lack
// acknowledged commits.
func checkLeader(info *jetstream.StreamInfo) error {
	if info.Cluster == nil || info.Cluster.Leader != "" {
		return nil
	}
	return fmt.Errorf("%w: stream %s has no leader: more than half of its %d servers must reach each other; check the servers that do not run",
		ErrUnavailable, info.Config.Name, info.Config.Replicas)
}

// getStream opens a stream, and fails if the stream has no leader.
func getStream(ctx context.Context, js jetstream.JetStream, name string) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return stream, checkLeader(stream.CachedInfo())
}

// info requests the stream's configuration and state from its leader.
func (l *Log) info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	info, err := l.stream.Info(ctx, opts...)
	if err == nil {
		err = checkLeader(info)
	}
	if err != nil {
		return nil, translateError(l.spec.name, err)
	}
	return info, nil
}
