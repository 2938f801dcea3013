package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// getRequest is a request of $JS.API.STREAM.MSG.GET, and getResponse the answer.
type getRequest struct {
	Seq     uint64 `json:"seq,omitempty"`
	LastFor string `json:"last_by_subj,omitempty"`
	NextFor string `json:"next_by_subj,omitempty"`
}

type getResponse struct {
	Error   *jetstream.APIError `json:"error"`
	Message *struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Header  []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
}

// get reads one message from the stream's leader. ok is false if the message does not exist. The
// direct API could read from a replica that lacks commits that were acknowledged a moment ago.
func (l *Log) get(ctx context.Context, req getRequest) (r Record, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := json.Marshal(req)
	if err != nil {
		return Record{}, false, err
	}
	var reply *nats.Msg
	subject := "$JS.API.STREAM.MSG.GET." + l.spec.name
	err = l.denials.run(ctx, subject, func(ctx context.Context) error {
		reply, err = l.nc.RequestWithContext(ctx, subject, body)
		return err
	})
	if err != nil {
		return Record{}, false, translateError(l.spec.name, err)
	}
	var resp getResponse
	if err := json.Unmarshal(reply.Data, &resp); err != nil {
		return Record{}, false, fmt.Errorf("decoding the server's answer: %w", err)
	}
	switch {
	case resp.Error != nil && resp.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return Record{}, false, nil
	case resp.Error != nil && resp.Error.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return Record{}, false, translateError(l.spec.name, jetstream.ErrStreamNotFound)
	case resp.Error != nil:
		return Record{}, false, translateError(l.spec.name, resp.Error)
	case resp.Message == nil:
		return Record{}, false, translateError(l.spec.name, errors.New("the server's answer is empty"))
	}
	m := resp.Message
	var h nats.Header
	if len(m.Header) > 0 {
		if h, err = nats.DecodeHeadersMsg(m.Header); err != nil {
			return Record{}, false, fmt.Errorf("decoding the header of commit %d: %w", m.Seq, err)
		}
	}
	return NewRecord(m.Seq, m.Time, m.Subject, h, m.Data), true, nil
}

// Read returns the commits on one aggregate after a sequence (0: all), in order. It includes every
// acknowledged commit of all writers. Each commit names its predecessor, so Read returns ErrGap if
// a predecessor cannot be read.
func (l *Log) Read(ctx context.Context, a Aggregate, after uint64) ([]Record, error) {
	if err := a.validate(); err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	out, err := l.readChain(ctx, a.Subject(), after)
	if err != nil {
		return nil, fmt.Errorf("reading %s after %d: %w", a, after, err)
	}
	return out, nil
}

// readChain reads each commit with one request. A filtered consumer or a batch from the direct API
// is no faster for the few commits of a decision.
func (l *Log) readChain(ctx context.Context, subject string, after uint64) ([]Record, error) {
	last, ok, err := l.last(ctx, subject)
	if err == nil {
		_, err = l.state(ctx) // fails if a commit is missing
	}
	if err != nil || !ok {
		return nil, err
	}
	var out []Record
	for after < last.Seq {
		next, found, err := l.get(ctx, getRequest{Seq: after + 1, NextFor: subject})
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fmt.Errorf("%w: nothing can be read between %d and the last commit %d", ErrGap, after, last.Seq)
		}
		if f, ok := next.previous(); ok && (f > after || len(out) > 0 && f != after) {
			return nil, fmt.Errorf("%w: commit %d follows %d, which cannot be read; restore the log from a backup or a mirror", ErrGap, next.Seq, f)
		}
		out = append(out, next)
		after = next.Seq
	}
	return out, nil
}

// last returns the newest commit on a subject. If it finds none, it counts the commits on the
// subject, because the server gives the same answer if it cannot read the newest commit.
func (l *Log) last(ctx context.Context, subject string) (Record, bool, error) {
	r, ok, err := l.get(ctx, getRequest{LastFor: subject})
	if err != nil || ok {
		return r, ok, err
	}
	n, err := l.count(ctx, subject)
	if err != nil || n == 0 {
		return Record{}, false, err
	}
	// The first commit may have been stored between the two requests.
	if r, ok, err = l.get(ctx, getRequest{LastFor: subject}); err == nil && !ok {
		err = fmt.Errorf("%w: the aggregate has %d commits, but its last one cannot be read; restore the log from a backup or a mirror", ErrGap, n)
	}
	return r, ok, err
}

func (l *Log) count(ctx context.Context, subject string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := l.info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, err
	}
	return info.State.Subjects[subject], nil
}

// At asks the leader for the commit at a sequence. It fails with ErrGap if there is none.
func (l *Log) At(ctx context.Context, seq uint64) (Record, error) {
	r, ok, err := l.get(ctx, getRequest{Seq: seq})
	if err == nil && !ok {
		err = fmt.Errorf("%w: the log has no such commit", ErrGap)
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading commit %d: %w", seq, err)
	}
	return r, nil
}

// Scan calls fn with every readable commit, in order, up to the head of the log at the time of the
// call. It skips unreadable commits, so the sequences may have gaps. It is for logs opened with
// AllowDamaged: with it, a caller finds out which commits are lost and saves the others. If fn
// returns an error, Scan stops and returns it.
func (l *Log) Scan(ctx context.Context, fn func(Record) error) error {
	state, err := l.state(ctx)
	if err != nil {
		return fmt.Errorf("scanning the log: %w", err)
	}
	r := &pass{cursor: max(state.FirstSeq, 1) - 1, fn: fn}
	r.until, err = l.lastReadable(ctx, r.cursor, state.LastSeq)
	for err == nil && r.cursor < r.until {
		err = l.read(ctx, r, replayTimeout)
		if errors.Is(err, ErrGap) {
			// The server does not deliver the next commit, so commits are requested by their
			// sequence until one can be read.
			err = l.skip(ctx, r)
		}
	}
	if err != nil {
		return fmt.Errorf("scanning the log: at %d: %w", r.cursor, err)
	}
	return nil
}

// lastReadable returns the last sequence in (after, head] whose commit can be read, or after if
// there is none.
func (l *Log) lastReadable(ctx context.Context, after, head uint64) (uint64, error) {
	for ; head > after; head-- {
		if _, ok, err := l.get(ctx, getRequest{Seq: head}); ok || err != nil {
			return head, err
		}
	}
	return after, nil
}

// skip advances to the next readable commit and calls fn with it, if there is one.
func (l *Log) skip(ctx context.Context, r *pass) error {
	for r.cursor < r.until {
		next, ok, err := l.get(ctx, getRequest{Seq: r.cursor + 1})
		if err != nil {
			return err
		}
		r.cursor++
		if ok {
			return r.fn(next)
		}
	}
	return nil
}
