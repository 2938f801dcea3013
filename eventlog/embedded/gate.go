package embedded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
)

const (
	// Requests of roles to create a consumer (createConsumer) are mapped to gateSubject.
	createConsumer, gateSubject = "$JS.API.CONSUMER.CREATE.*.*", "_SCUTE_GATE.*.*"
	// appendPrefix replaces the prefix of the log's subjects in commits that roles append, so that the
	// gate receives these commits.
	appendPrefix = "_SCUTE_APPEND"
	// maxConsumers is the number of consumers of the log from which on roles cannot create another
	// one. The server allows 1000 consumers; the rest is reserved for this process.
	maxConsumers = 900
	// maxIdle is the longest inactive_threshold of a role's consumer.
	maxIdle = 2 * time.Minute
	// gateTimeout bounds a request to the server of this process.
	gateTimeout = 10 * time.Second
)

// gate creates consumers for roles, and appends commits of roles if Access.Accept allows them.
// Without the gate's checks a consumer could append to the log through its delivery subject, could
// exist forever, or could change the consumer of another client.
type gate struct {
	nc     *nats.Conn
	accept func(eventlog.Aggregate, []eventlog.Event) error // nil accepts all
}

func openGate(srv *server.Server, token string, accept func(eventlog.Aggregate, []eventlog.Event) error, logger *slog.Logger) (*gate, error) {
	nc, err := nats.Connect("", nats.InProcessServer(srv), nats.Timeout(eventlog.HostTimeout), nats.Token(token), nats.CustomInboxPrefix("_SCUTE"), nats.ErrorHandler(
		func(_ *nats.Conn, _ *nats.Subscription, err error) {
			logger.Warn("event log: consumers of its listener", "error", err)
		}))
	if err != nil {
		return nil, fmt.Errorf("preparing the consumers of roles: %w", err)
	}
	g := &gate{nc, accept}
	_, err = nc.Subscribe(gateSubject, g.create)
	_, err2 := nc.Subscribe(appendPrefix+".>", g.append)
	if err = errors.Join(err, err2); err == nil {
		err = nc.Flush()
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("preparing the consumers of roles: %w", err)
	}
	return g, nil
}

func (g *gate) close() {
	if g != nil {
		g.nc.Close()
	}
}

type consumerRequest struct {
	Stream string                   `json:"stream_name"`
	Config jetstream.ConsumerConfig `json:"config"`
	Action string                   `json:"action"`
}

func (g *gate) create(m *nats.Msg) {
	at := strings.Split(m.Subject, ".")
	answer, err := g.forward(at[1], at[2], m.Data)
	if err != nil {
		answer = denial(err, "io.nats.jetstream.api.v1.consumer_create_response")
	}
	_ = m.Respond(answer) // the client may have disconnected
}

func (g *gate) forward(stream, name string, data []byte) ([]byte, error) {
	var r consumerRequest
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("the request for a consumer cannot be read: %w", err)
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	// Send the decoded request, because only its fields were checked.
	r.Action = "create"
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	info, err := g.nc.Request("$JS.API.STREAM.INFO."+stream, nil, gateTimeout)
	if err != nil {
		return nil, err
	}
	var has jetstream.StreamInfo
	if err := json.Unmarshal(info.Data, &has); err != nil {
		return nil, err
	}
	if has.State.Consumers >= maxConsumers {
		return nil, fmt.Errorf("the log already has %d consumers: no other is created until some of them are idle", has.State.Consumers)
	}
	reply, err := g.nc.Request("$JS.API.CONSUMER.CREATE."+stream+"."+name, data, gateTimeout)
	if err != nil {
		return nil, err
	}
	return reply.Data, nil
}

// validate refuses every consumer that is not a short-lived pull consumer in memory.
func (r *consumerRequest) validate() error {
	c := r.Config
	plain := jetstream.ConsumerConfig{
		Name: c.Name, DeliverPolicy: c.DeliverPolicy, OptStartSeq: c.OptStartSeq, OptStartTime: c.OptStartTime, AckPolicy: jetstream.AckNonePolicy,
		HeadersOnly: c.HeadersOnly, InactiveThreshold: c.InactiveThreshold, Replicas: c.Replicas, MemoryStorage: true,
	}
	switch {
	case !reflect.DeepEqual(c, plain):
		return errors.New("a consumer created through the listener must be a pull consumer in memory, without acknowledgements and filters, and not durable")
	case c.InactiveThreshold < 0 || c.InactiveThreshold > maxIdle:
		return fmt.Errorf("inactive_threshold is %s: it must be %s or less", c.InactiveThreshold, maxIdle)
	}
	return nil
}

func (g *gate) append(m *nats.Msg) {
	subject := logPrefix + strings.TrimPrefix(m.Subject, appendPrefix)
	if err := g.check(subject, m); err != nil {
		_ = m.Respond(denial(err, "")) // the client may have disconnected
		return
	}
	answer, err := g.nc.RequestMsg(&nats.Msg{Subject: subject, Header: m.Header, Data: m.Data}, gateTimeout)
	switch {
	case errors.Is(err, nats.ErrNoResponders): // the stream was deleted
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": {"503"}}})
	case err == nil:
		_ = m.Respond(answer.Data)
	} // if there is no answer, the client checks whether the commit is stored
}

// denial returns the answer to a denied request. kind is the type of the answer; the answer to a
// publish has none.
func denial(err error, kind string) []byte {
	answer, _ := json.Marshal(struct { // never fails
		Error *jetstream.APIError `json:"error"`
		Type  string              `json:"type,omitempty"`
	}{&jetstream.APIError{Code: 403, Description: err.Error()}, kind})
	return answer
}

func (g *gate) check(subject string, m *nats.Msg) error {
	if g.accept == nil {
		return nil
	}
	r := eventlog.NewRecord(0, time.Time{}, subject, m.Header, m.Data)
	events, err := r.Events()
	if err != nil {
		return err
	}
	if !slices.EqualFunc(r.Types(), events, func(listed string, e eventlog.Event) bool { return listed == e.Type }) {
		return errors.New("the types in the header of the commit differ from those of its events")
	}
	return g.accept(r.Aggregate, events)
}
