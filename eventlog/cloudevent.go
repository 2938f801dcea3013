package eventlog

import (
	"encoding/json"
	"time"
)

// CloudEvent is one event in the JSON format of CloudEvents 1.0. The members after DataContentType and before Data are extensions.
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
	// Sequence and LogID are where the event is stored. They are not in the log itself.
	Sequence string          `json:"sequence,omitempty"`
	LogID    string          `json:"logid,omitempty"`
	Data     json.RawMessage `json:"data"`
}

// Headers returns the attributes as headers of a message in binary mode, as the bindings of CloudEvents define it: with the prefix ce-, and
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
