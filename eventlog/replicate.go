package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// replicationRate is the slowest accepted rate at which servers copy a stream, in bytes per second. It bounds the wait.
	replicationRate = 1 << 20
	// replicationTimeout is added to the wait, and bounds how long a server may be offline meanwhile.
	replicationTimeout = time.Minute
)

// replicate increases the replicas of a stream with one replica, and returns when each server has the whole stream. A stream that is uploaded with
// several replicas is acknowledged when one server has it. If this server fails, the others cannot continue, and report another creation time.
// replicate calls waiting, if it is not nil, with what it waits for.
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

// errOffline is the reason if a server cannot copy at present.
var errOffline = errors.New("offline")

// replicaStatus is a server's answer about the replicas of a stream. Desired is set until each added server has the whole stream.
type replicaStatus struct {
	Cluster struct {
		Leader   string               `json:"leader"`
		Desired  json.RawMessage      `json:"desired"`
		Replicas []jetstream.PeerInfo `json:"replicas"`
	} `json:"cluster"`
}

// check returns why a server does not have the whole stream, or nil.
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
