package remediator

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", 10 * time.Minute: "10m", 90 * time.Second: "1m30s", time.Hour: "1h", 20 * time.Hour: "20h",
		90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s",
	} {
		if got := span(d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
