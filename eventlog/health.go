package eventlog

import (
	"context"
	"fmt"
)

// minPayload is the smallest message limit that a server may have: the largest commits of scute fit into it.
const minPayload = 1 << 20

// Health returns nil if the log accepts commits. It fails with
//
//	ErrFrozen                   a write to the embedded log's disk failed; Thawed reports when opening the log again may help
//	ErrConfig                   the server or the stream is no longer configured as the log requires
//	ErrUnavailable, ErrMissing, ErrGap
func (l *Log) Health(ctx context.Context) error {
	if err := l.checkFrozen(); err != nil {
		return err
	}
	err := l.checkIntact()
	if err == nil {
		_, err = l.state(ctx)
	}
	if err == nil {
		err = checkPayload(l.nc.MaxPayload())
	}
	if err == nil {
		err = l.spec.check(l.stream.CachedInfo().Config)
	}
	if err != nil {
		return fmt.Errorf("checking the log: %w", err)
	}
	return nil
}

// Warnings returns what may weaken the log's durability, and which settings this process cannot check.
func (l *Log) Warnings() []string {
	if l.host != nil || !l.spec.writer {
		return nil
	}
	if n := l.stream.CachedInfo().Config.Replicas; n < 2 {
		return []string{"one NATS server stores the log, and scuted cannot check whether it syncs each commit to its disk: " +
			"set sync_interval: always in its configuration, or give the stream three replicas"}
	}
	return []string{"scuted cannot check whether the NATS servers sync each commit to their disks: " +
		"without sync_interval: always, a power loss of all of them at once can lose the last commits"}
}

// checkPayload refuses a server with a limit below minPayload, because it could refuse a commit that other servers accept.
func checkPayload(limit int64) error {
	if limit < minPayload {
		return fmt.Errorf("%w: max_payload of the NATS server is %d bytes, must be %d or more", ErrConfig, limit, minPayload)
	}
	return nil
}
