package timespan

import (
	"strings"
	"time"
)

// Text returns a duration in Go's notation without trailing units that are zero: "1h" and not "1h0m0s". It is exact, and time.ParseDuration parses
// it.
func Text(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Normalize returns the Text of a duration that was stored in Go's notation. It returns any other string unchanged.
func Normalize(s string) string {
	d, err := time.ParseDuration(s)
	if err != nil {
		return s
	}
	return Text(d)
}
