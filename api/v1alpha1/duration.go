package v1alpha1

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Duration is a duration in the syntax of Go, such as 90s, 5m or 1h30m. It is never negative. The
// schema and ParseDuration accept the same texts, a subset of those that time.ParseDuration
// accepts: no sign, and at most four parts, none of which overflows.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^(0|([0-9]{1,5}(\.[0-9]{1,9})?h|[0-9]{1,7}(\.[0-9]{1,9})?(m|s|ms|us|µs|ns)){1,4})$`
type Duration struct {
	time.Duration `json:"-"`
}

// durationPattern is the pattern of the schema; a test compares the two.
const durationPattern = `^(0|([0-9]{1,5}(\.[0-9]{1,9})?h|[0-9]{1,7}(\.[0-9]{1,9})?(m|s|ms|us|µs|ns)){1,4})$`

// ParseDuration parses a duration that the schema accepts.
func ParseDuration(text string) (Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || !regexp.MustCompile(durationPattern).MatchString(text) {
		return Duration{}, fmt.Errorf("%q is not a duration: write it in h, m and s, such as 90s, 5m or 1h30m", text)
	}
	return Duration{d}, nil
}

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	err := json.Unmarshal(data, &text)
	if err != nil {
		return fmt.Errorf("%s is not a duration: write it in quotes, such as \"90s\" or \"5m\"", data)
	}
	*d, err = ParseDuration(text)
	return err
}

// Or returns the duration, or otherwise if it is not set.
func (d *Duration) Or(otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}

// StatusTime returns a time for a status: nil for the zero time.
func StatusTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
