package eventlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of a stored commit. NATS header names are case-sensitive and used exactly as spelled here.
const (
	headerTypes   = "Scute-Types"
	headerContent = "Content-Type"

	contentBatch = "application/cloudevents-batch+json"
	contentJSON  = "application/json"

	ceSpecVersion = "1.0"
)

// encode returns the message of a commit: a binary CloudEvent for one event, a batch for several.
func (c Commit) encode() (*nats.Msg, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	m := &nats.Msg{Subject: c.Aggregate.Subject()}
	m.Header = make(nats.Header, 16)
	m.Header[jetstream.MsgIDHeader] = []string{messageID(m.Subject, c.ID)}
	m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(c.Expected, 10)}
	batch := make([]CloudEvent, len(c.Events))
	types := make([]string, len(c.Events))
	for i, e := range c.Events {
		types[i] = e.Type
		e.ID = c.EventID(i)
		batch[i] = e.cloudEvent(c.Aggregate, m.Subject)
	}
	if len(batch) == 1 {
		for name, value := range batch[0].Headers() {
			m.Header[name] = []string{value}
		}
		m.Header["ce-datacontenttype"] = []string{contentJSON}
		m.Data = c.Events[0].Data
		return m, nil
	}
	m.Header[headerContent] = []string{contentBatch}
	m.Header[headerTypes] = []string{packTypes(types)}
	var err error
	if m.Data, err = json.Marshal(batch); err != nil {
		return nil, fmt.Errorf("encoding commit %s: %w", c.ID, err)
	}
	return m, nil
}

func (e Event) cloudEvent(a Aggregate, subject string) CloudEvent {
	return CloudEvent{
		SpecVersion: ceSpecVersion, ID: e.ID, Source: source(subject), Type: e.Type, Subject: a.ID,
		Time: e.Time.UTC(), DataContentType: contentJSON, Actor: e.Actor, Causation: e.Causation, Correlation: e.Correlation,
		Data: e.Data,
	}
}

// validate refuses a commit that could not be read back.
func (c Commit) validate() error {
	if err := c.Aggregate.validate(); err != nil {
		return err
	}
	if c.ID == "" || len(c.Events) == 0 {
		return fmt.Errorf("commit %q on %s: an id and at least one event are needed", c.ID, c.Aggregate)
	}
	prefix := typePrefix + string(c.Aggregate.Kind) + "."
	for i, e := range c.Events {
		switch {
		case !strings.HasPrefix(e.Type, prefix) || strings.ContainsAny(e.Type, ",* "):
			return fmt.Errorf("commit %s on %s: event %d: type %q is not %s<fact>.v<N>", c.ID, c.Aggregate, i, e.Type, prefix)
		case !json.Valid(e.Data):
			return fmt.Errorf("commit %s on %s: event %d (%s): the data is not JSON", c.ID, c.Aggregate, i, e.Type)
		}
	}
	return nil
}

// EventID returns the ID with which the event at index i of the commit is stored.
func (c Commit) EventID(i int) string {
	if id := c.Events[i].ID; id != "" {
		return id
	}
	return c.ID + "/" + strconv.Itoa(i)
}

// messageID returns the commit's Nats-Msg-Id. It contains the aggregate, because the server
// compares message IDs over the whole stream, while the ID of a commit is only unique within its
// aggregate.
func messageID(subject, commit string) string {
	return strings.TrimPrefix(subject, subjectPrefix) + "/" + percentEncode(commit)
}

// commitID returns the ID of a stored commit, or "" for a message that Append did not write.
func commitID(h nats.Header) string {
	_, id, _ := strings.Cut(headerValue(h, jetstream.MsgIDHeader), "/")
	return percentDecode(id)
}

// source returns the ce-source of an aggregate's events. The pair of ce-source and ce-id is unique
// within a log.
func source(subject string) string {
	kind, id, _ := strings.Cut(strings.TrimPrefix(subject, subjectPrefix), ".")
	return "scute.dev/" + kind + "/" + id
}

func decode(h nats.Header, data []byte) ([]Event, error) {
	if headerValue(h, headerContent) == contentBatch {
		return decodeBatch(data)
	}
	if headerValue(h, "ce-specversion") != ceSpecVersion {
		return nil, errors.New("the message is neither a CloudEvent 1.0 nor a batch of them")
	}
	get := func(name string) string { return percentDecode(headerValue(h, name)) }
	e := Event{
		ID: get("ce-id"), Type: get("ce-type"), Actor: get("ce-actor"), Causation: get("ce-causation"),
		Correlation: get("ce-correlation"), Data: data,
	}
	var err error
	if e.Time, err = time.Parse(time.RFC3339Nano, get("ce-time")); err != nil {
		return nil, fmt.Errorf("ce-time: %w", err)
	}
	return []Event{e}, nil
}

func decodeBatch(data []byte) ([]Event, error) {
	var batch []CloudEvent
	if err := json.Unmarshal(data, &batch); err != nil {
		return nil, fmt.Errorf("batch: %w", err)
	}
	events := make([]Event, len(batch))
	for i, b := range batch {
		if b.SpecVersion != ceSpecVersion {
			return nil, fmt.Errorf("batch: event %d: specversion is %q, not %s", i, b.SpecVersion, ceSpecVersion)
		}
		events[i] = Event{
			ID: b.ID, Type: b.Type, Time: b.Time, Actor: b.Actor, Causation: b.Causation, Correlation: b.Correlation,
			Data: b.Data,
		}
	}
	return events, nil
}

// packTypes encodes event types for a header. It counts repeated types: "a*200,b". All headers
// together may have 64 KiB.
func packTypes(types []string) string {
	var b strings.Builder
	for i := 0; i < len(types); {
		n := 1
		for i+n < len(types) && types[i+n] == types[i] {
			n++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(types[i])
		if n > 1 {
			b.WriteString("*" + strconv.Itoa(n))
		}
		i += n
	}
	return b.String()
}

// unpackTypes parses a result of packTypes. It accepts any text, because a list that Append did not
// write must not stop a replay.
func unpackTypes(s string) []string {
	var types []string
	for run := range strings.SplitSeq(s, ",") {
		name, count, _ := strings.Cut(run, "*")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			n = 1
		}
		if n = min(n, maxBatch-len(types)); n == 0 {
			break
		}
		for range n {
			types = append(types, name)
		}
	}
	return types
}

// maxBatch limits the number of types that unpackTypes returns. More events do not fit into the
// largest payload (64 MiB).
const maxBatch = 1 << 20

// percentEncode encodes a header value as the NATS binding of CloudEvents defines it: space, '"',
// '%' and all characters that are not printable ASCII become %XX.
func percentEncode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// percentDecode decodes a header value. It returns a value with an invalid encoding unchanged.
func percentDecode(s string) string {
	if d, err := url.PathUnescape(s); err == nil {
		return d
	}
	return s
}

// headerValue returns the header with exactly this name. The method Get would canonicalize the
// name.
func headerValue(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// CloudEvent is one event in the JSON format of CloudEvents 1.0. The members after DataContentType
// and before Data are extensions.
type CloudEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Actor           string    `json:"actor,omitempty"`
	Causation       string    `json:"causation,omitempty"`
	Correlation     string    `json:"correlation,omitempty"`
	// Sequence is the position of the event in the log, and LogID the ID of the log. They are not
	// stored in the log.
	Sequence string          `json:"sequence,omitempty"`
	LogID    string          `json:"logid,omitempty"`
	Data     json.RawMessage `json:"data"`
}

// Headers returns the attributes as CloudEvents headers in binary mode: with the prefix ce-, and
// percent-encoded. DataContentType is not included, because HTTP has Content-Type for it.
func (e CloudEvent) Headers() map[string]string {
	out := make(map[string]string, 11)
	for name, value := range map[string]string{
		"specversion": e.SpecVersion, "id": e.ID, "source": e.Source, "type": e.Type, "subject": e.Subject,
		"time": e.Time.UTC().Format(time.RFC3339Nano), "actor": e.Actor, "causation": e.Causation, "correlation": e.Correlation,
		"sequence": e.Sequence, "logid": e.LogID,
	} {
		if value != "" {
			out["ce-"+name] = percentEncode(value)
		}
	}
	return out
}
