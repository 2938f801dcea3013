package timespan

import (
	"strings"
	"time"
)

// Text is a duration for people, in Go's notation without the units at its end that are zero: "1h" and not "1h0m0s". It is exact, and
// time.ParseDuration reads it.
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

// Stored is the Text of a duration that was stored in Go's notation; what is none is returned as it is.
func Stored(s string) string {
	d, err := time.ParseDuration(s)
	if err != nil {
		return s
	}
	return Text(d)
}
