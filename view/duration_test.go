package view_test

import (
	"testing"
	"time"

	"scute.dev/view"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", 10 * time.Minute: "10m", 90 * time.Second: "1m30s", time.Hour: "1h", 20 * time.Hour: "20h",
		90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s", 1500 * time.Millisecond: "1.5s", -5 * time.Minute: "-5m", -time.Hour: "-1h",
	} {
		got := view.Duration(d)
		if got != want {
			t.Errorf("Duration = %s, want %s", got, want)
		}
		if read, err := time.ParseDuration(got); read != d || err != nil {
			t.Errorf("ParseDuration(%s) = %s, error %v", got, read, err)
		}
	}
}

func TestNormalizeDuration(t *testing.T) {
	for s, want := range map[string]string{"24h0m0s": "24h", "5m0s": "5m", "20m": "20m", "a while": "a while", "": ""} {
		if got := view.NormalizeDuration(s); got != want {
			t.Errorf("NormalizeDuration(%q) = %q, want %q", s, got, want)
		}
	}
}
