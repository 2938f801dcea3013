package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

const (
	// aggregates is the number of aggregates of a log's commits.
	aggregates = 10_000
	// payload is the size of an event's data. With its headers a commit takes about 900 bytes on disk.
	payload = 512
)

// measureLog measures the group "log".
func measureLog(ctx context.Context, b *bench) error {
	for _, m := range []func(context.Context, *bench) error{measureAppend, measureReplay} {
		if err := m(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// commit returns the n-th commit of aggregate a.
func commit(a, n int, expected uint64) eventlog.Commit {
	data, err := json.Marshal(struct {
		N   int    `json:"n"`
		Pad string `json:"pad"`
	}{n, strings.Repeat("x", payload-len(`{"n":,"pad":""}`)-len(strconv.Itoa(n)))})
	if err != nil {
		panic(err) // cannot happen: a number and a string
	}
	return eventlog.Commit{
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: fmt.Sprintf("fleet/cluster-%05d", a)},
		ID:        fmt.Sprintf("move-%05d-%d", a, n),
		Expected:  expected,
		Events: []eventlog.Event{{
			Type:        fmt.Sprintf("dev.scute.move.fact%d.v1", n%10),
			Time:        time.Unix(1_800_000_000, int64(n)),
			Actor:       "daemon/scuted-0",
			Causation:   "request-7",
			Correlation: fmt.Sprintf("move-%05d", a),
			Data:        data,
		}},
	}
}

// rawServer is a NATS server on the folder of a closed log: the same stream and the same files, without eventlog.
type rawServer struct {
	srv *server.Server
	nc  *nats.Conn
	js  jetstream.JetStream
}

func openRaw(dir string, sync bool) (*rawServer, error) {
	srv, err := server.NewServer(&server.Options{
		ServerName: "scute", JetStream: true, StoreDir: dir, SyncAlways: sync, DontListen: true, NoSigs: true,
		JetStreamMaxStore: 1 << 50, JetStreamMaxMemory: 1 << 30,
	})
	if err != nil {
		return nil, err
	}
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		return nil, errors.New("the server did not start")
	}
	nc, err := nats.Connect("", nats.InProcessServer(srv))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	return &rawServer{srv, nc, js}, err
}

func (r *rawServer) close() {
	r.nc.Close()
	r.srv.Shutdown()
	r.srv.WaitForShutdown()
}

// place is where commits are appended to a closed log: after which sequence, and with which subject prefix.
type place struct {
	head   uint64
	prefix string
}

// open creates an empty log in dir unless there is one, and returns its place.
func open(ctx context.Context, dir string) (place, error) {
	l, err := embedded.Open(ctx, embedded.Options{Dir: dir, MaxBytes: 8 << 30})
	if err != nil {
		return place{}, err
	}
	p := place{prefix: "scute.log."}
	p.head, err = l.Head(ctx)
	return p, errors.Join(err, l.Close())
}

// template returns the header that the log sets for a commit. It stores one commit in another log.
func template(ctx context.Context, b *bench) (nats.Header, error) {
	scratch, err := embedded.Open(ctx, embedded.Options{Dir: filepath.Join(b.dir, "template")})
	if err != nil {
		return nil, err
	}
	defer scratch.Close()
	c := commit(0, 0, 0)
	head, err := scratch.Head(ctx)
	if err != nil {
		return nil, err
	}
	if head == 0 {
		if _, err := scratch.Append(ctx, c); err != nil {
			return nil, err
		}
	}
	r, err := scratch.At(ctx, 1)
	return r.Header(), err
}

// message returns the commit as a message from the template. This is cheap, so that the log's own encoding is not part
// of the comparison.
func message(h nats.Header, c eventlog.Commit) *nats.Msg {
	m := &nats.Msg{Subject: c.Aggregate.Subject(), Data: c.Events[0].Data, Header: make(nats.Header, len(h))}
	for k, v := range h {
		m.Header[k] = v
	}
	escaped := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	m.Header[jetstream.MsgIDHeader] = []string{string(c.Aggregate.Kind) + "." + escaped + "/" + c.ID}
	m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(c.Expected, 10)}
	m.Header["ce-id"] = []string{c.ID + "/0"}
	m.Header["ce-source"] = []string{"scute.dev/" + string(c.Aggregate.Kind) + "/" + escaped}
	m.Header["ce-type"] = []string{c.Events[0].Type}
	m.Header["ce-subject"] = []string{c.Aggregate.ID}
	m.Header["ce-correlation"] = []string{c.Events[0].Correlation}
	m.Header["ce-time"] = []string{c.Events[0].Time.UTC().Format(time.RFC3339Nano)}
	return m
}

// fill writes a log of n commits, spread over some aggregates.
func fill(ctx context.Context, b *bench, dir string, n, spread int) error {
	last := make([]uint64, spread)
	return fillWith(ctx, b, dir, n, func(i int, seq uint64) eventlog.Commit {
		a := i % spread
		c := commit(a, i/spread, last[a])
		last[a] = seq
		return c
	})
}

// fillWith appends n commits to a log. next receives the sequence of each. It writes without syncs, which results in
// the same files.
func fillWith(ctx context.Context, b *bench, dir string, n int, next func(i int, seq uint64) eventlog.Commit) error {
	h, err := template(ctx, b)
	if err != nil {
		return err
	}
	at, err := open(ctx, dir)
	if err != nil {
		return err
	}
	raw, err := openRaw(dir, false)
	if err != nil {
		return err
	}
	defer raw.close()
	js, err := jetstream.New(raw.nc, jetstream.WithPublishAsyncMaxPending(512))
	if err != nil {
		return err
	}
	var acks []jetstream.PubAckFuture
	settle := func() error {
		for _, a := range acks {
			select {
			case <-a.Ok():
			case err := <-a.Err():
				return fmt.Errorf("filling the log: %w", err)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		acks = acks[:0]
		return nil
	}
	for i := range n {
		m := message(h, next(i, at.head+uint64(i)+1)) //nolint:gosec // not negative
		m.Subject = at.prefix + strings.TrimPrefix(m.Subject, "scute.log.")
		ack, err := js.PublishMsgAsync(m)
		if err != nil {
			return err
		}
		if acks = append(acks, ack); len(acks) == 400 {
			if err := settle(); err != nil {
				return err
			}
		}
	}
	return settle()
}

// median returns the median of some measurements.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
