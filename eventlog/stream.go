package eventlog

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// subjectsOverlap is the server's error if another stream of the account has a subject of this
// stream. The client has no constant for this error.
const subjectsOverlap jetstream.ErrorCode = 10065

// defaultMaxBytes is the default size at which a log refuses new commits: about a million commits.
const defaultMaxBytes = 1 << 30

// duplicateWindow is the time for which the server remembers message IDs to detect duplicates. The
// log does not rely on this. A long window slows down a restart, because the server then loads
// every message of that time.
const duplicateWindow = time.Second

// streamSpec is the configuration that the log requires of its stream.
type streamSpec struct {
	name         string
	replicas     int
	maxBytes     int64 // 0 keeps the limit of an existing stream
	writer       bool  // a reader never creates or alters the stream
	allowDamaged bool  // the stream is read even if it is damaged: see Scan
	// acknowledged is the highest sequence known to be acknowledged; 0 means none. If it is set and
	// the stream does not exist, the stream was lost.
	acknowledged uint64
}

func subjects() []string { return []string{subjectPrefix + "*.*"} }

// config returns the configuration of a new stream. The stream keeps all messages, denies deleting
// them, and refuses new ones when it is full. DenyPurge is not set because a server never unsets
// it, and a later version may delete the commits of ended aggregates.
func (s streamSpec) config() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        s.name,
		Description: "event log of scute: one commit per message, one subject per aggregate",
		Subjects:    subjects(),
		Retention:   jetstream.LimitsPolicy,
		Storage:     jetstream.FileStorage,
		Replicas:    max(s.replicas, 1),
		MaxBytes:    cmp.Or(s.maxBytes, defaultMaxBytes),
		MaxMsgs:     -1,
		Discard:     jetstream.DiscardNew,
		Duplicates:  duplicateWindow,
		DenyDelete:  true,
		AllowDirect: true,
		Metadata:    map[string]string{identityKey: newID()},
	}
}

// ensure opens the stream. It creates a missing stream for a writer, and refuses a stream whose configuration differs.
func (s streamSpec) ensure(ctx context.Context, js jetstream.JetStream) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	stream, err := getStream(ctx, js, s.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if s.acknowledged > 0 {
			return nil, fmt.Errorf("%w, but it held commits: it was deleted or damaged; restore it from a backup or a mirror", ErrMissing)
		}
		if !s.writer {
			return nil, fmt.Errorf("%w: the daemon creates it at its first start", ErrMissing)
		}
		stream, err = js.CreateStream(ctx, s.config())
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			// Another writer created the stream first. It is checked like any existing stream.
			stream, err = getStream(ctx, js, s.name)
		}
	}
	if err != nil {
		return nil, s.addRemedy(fmt.Errorf("%w: %w", ErrUnavailable, err))
	}
	info := stream.CachedInfo()
	if s.allowDamaged {
		return stream, nil
	}
	if err := s.check(info.Config); err != nil {
		return nil, err
	}
	if err := checkComplete(s.name, info.State); err != nil {
		return nil, err
	}
	return s.update(ctx, js, stream)
}

func (s streamSpec) addRemedy(err error) error {
	switch config := s.config(); {
	case hasCode(err, subjectsOverlap):
		return fmt.Errorf("%w: another stream of this NATS account already has the subjects of an event log; give this log its own account or server, or delete that stream first if nobody needs it", ErrConfig)
	case hasCode(err, codeReplicas):
		return fmt.Errorf("%w: Replicas is %d, must be 1: the NATS server is not part of a cluster", ErrConfig, config.Replicas)
	case hasCode(err, codeStorage, codeAccountLimit, codeStreamBytes):
		return fmt.Errorf("%w: MaxBytes is %d; raise the storage limit of the NATS account or server (max_file), or lower the limit of the log",
			err, config.MaxBytes)
	default:
		return err
	}
}

// update applies a new size limit, which the operator may change at every start. It also adds an ID
// to a stream that has none.
func (s streamSpec) update(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream) (jetstream.Stream, error) {
	have := stream.CachedInfo()
	resize := s.maxBytes != 0 && s.maxBytes != have.Config.MaxBytes
	name := have.Config.Metadata[identityKey] == ""
	if !s.writer || !resize && !name {
		return stream, nil
	}
	config := have.Config
	if resize {
		if used := have.State.Bytes; uint64(s.maxBytes) < used {
			return nil, fmt.Errorf("%w: the log already holds %d bytes, and the limit %d is smaller; choose a larger limit", ErrConfig, used, s.maxBytes)
		}
		config.MaxBytes = s.maxBytes
	}
	config.Metadata = maps.Clone(config.Metadata)
	if config.Metadata == nil {
		config.Metadata = make(map[string]string)
	}
	config.Metadata[identityKey] = identity(have)
	stream, err := js.UpdateStream(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("changing MaxBytes from %d to %d and the ID to %s: %w: %w",
			have.Config.MaxBytes, config.MaxBytes, config.Metadata[identityKey], ErrUnavailable, err)
	}
	return stream, nil
}

// check returns an error that names every field of a stream's configuration that could make the log
// lose, alter, reorder or leak events.
func (s streamSpec) check(have jetstream.StreamConfig) error {
	var out []string
	check := func(ok bool, field string, have any, want string) {
		if !ok {
			out = append(out, fmt.Sprintf("%s is %v, must be %s", field, have, want))
		}
	}
	want := s.config()
	check(slices.Equal(have.Subjects, want.Subjects), "Subjects", have.Subjects, fmt.Sprint(want.Subjects))
	check(have.Storage == want.Storage, "Storage", have.Storage, want.Storage.String())
	check(have.Retention == want.Retention, "Retention", have.Retention, want.Retention.String())
	check(have.Discard == want.Discard, "Discard", have.Discard, want.Discard.String())
	check(!have.DiscardNewPerSubject, "DiscardNewPerSubject", have.DiscardNewPerSubject, "false")
	check(have.Replicas >= want.Replicas, "Replicas", have.Replicas, fmt.Sprintf("%d or more", want.Replicas))
	check(have.MaxBytes > 0, "MaxBytes", have.MaxBytes, "set, so that a full log refuses before its disk is full")
	check(have.MaxMsgs <= 0, "MaxMsgs", have.MaxMsgs, "unlimited")
	check(have.MaxMsgsPerSubject <= 0, "MaxMsgsPerSubject", have.MaxMsgsPerSubject, "unlimited")
	check(have.MaxMsgSize <= 0, "MaxMsgSize", have.MaxMsgSize, "unlimited")
	check(have.MaxAge == 0, "MaxAge", have.MaxAge, "unlimited")
	check(have.Duplicates <= duplicateWindow, "Duplicates", have.Duplicates, duplicateWindow.String()+" or less")
	check(have.FirstSeq <= 1, "FirstSeq", have.FirstSeq, "1")
	check(have.DenyDelete, "DenyDelete", have.DenyDelete, "true")
	check(have.AllowDirect, "AllowDirect", have.AllowDirect, "true")
	check(!have.NoAck, "NoAck", have.NoAck, "false")
	check(!have.Sealed, "Sealed", have.Sealed, "false")
	check(!have.AllowRollup, "AllowRollup", have.AllowRollup, "false")
	check(!have.AllowMsgTTL, "AllowMsgTTL", have.AllowMsgTTL, "false")
	check(have.SubjectDeleteMarkerTTL == 0, "SubjectDeleteMarkerTTL", have.SubjectDeleteMarkerTTL, "unset")
	check(!have.AllowMsgCounter, "AllowMsgCounter", have.AllowMsgCounter, "false")
	check(!have.AllowMsgSchedules, "AllowMsgSchedules", have.AllowMsgSchedules, "false")
	check(!have.AllowAtomicPublish, "AllowAtomicPublish", have.AllowAtomicPublish, "false")
	check(!have.AllowBatchPublish, "AllowBatchPublish", have.AllowBatchPublish, "false")
	check(have.PersistMode == want.PersistMode, "PersistMode", have.PersistMode, want.PersistMode.String())
	check(have.Mirror == nil, "Mirror", "set", "unset")
	check(len(have.Sources) == 0, "Sources", "set", "unset")
	check(have.SubjectTransform == nil, "SubjectTransform", "set", "unset")
	check(have.Metadata[restoringKey] == "", "Metadata "+restoringKey, "set", "unset: it is being restored from a backup, or its restore did not end and must be run again")
	check(have.RePublish == nil, "RePublish", "set", "unset")
	if len(out) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s; correct the stream", ErrConfig, strings.Join(out, "; "))
}

func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	refused := (*jetstream.APIError)(nil)
	return errors.As(err, &refused) && slices.Contains(codes, refused.ErrorCode)
}

// checkLeader returns ErrUnavailable if the stream has no leader. Without a leader a server answers
// with its own state, which changes and may lack acknowledged commits.
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

const identityKey = "scute.dev/log-id"

// identityBytes is small enough that an ID in hexadecimal fits into a label.
const identityBytes = 8

// ID returns the log's ID. It is created with the stream and does not change. A copy of the log has
// the same ID. Annotations outside of the log contain the ID, so that a daemon ignores annotations
// that belong to another log.
func (l *Log) ID() string { return l.id }

func newID() string {
	b := make([]byte, identityBytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// identity derives an ID from the name and the creation time of a stream that has none. Two writers
// that open the stream at the same time thus derive the same ID.
func identity(info *jetstream.StreamInfo) string {
	if id := info.Config.Metadata[identityKey]; id != "" {
		return id
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s", info.Config.Name, info.Created.UTC().Format(time.RFC3339Nano)))
	return hex.EncodeToString(sum[:identityBytes])
}
