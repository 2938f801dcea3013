package v1alpha1

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond, "2µs": 2 * time.Microsecond, "99999h": 99999 * time.Hour,
	} {
		var d Duration
		if err := json.Unmarshal([]byte(`"`+text+`"`), &d); err != nil || d.Duration != want {
			t.Errorf("%s decodes to %s, error %v", text, d.Duration, err)
		}
	}
	for _, text := range []string{`""`, `"1d"`, `"5 minutes"`, `"-5m"`, `"+5m"`, `"5"`, `".5s"`, `"1.s"`, `"100000h"`, `"99999999999999999999s"`, `"1m1m1m1m1m"`, "5", "{}", "true"} {
		var d Duration
		if err := json.Unmarshal([]byte(text), &d); err == nil || !strings.Contains(err.Error(), "such as") {
			t.Errorf("%s decodes to %s, error %v, want an error", text, d.Duration, err)
		}
	}
}

// TestDurationIsReadAsWritten checks that every encoded duration in the range of the schema can be decoded.
func TestDurationIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Duration{time.Duration(rapid.Int64Range(0, int64(99999*time.Hour)).Draw(t, "d"))}
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var again Duration
		if err := json.Unmarshal(data, &again); err != nil || again != d {
			t.Fatalf("%s decodes to %s, error %v", data, again.Duration, err)
		}
	})
}

func TestSchemaHasTheDurationsPattern(t *testing.T) {
	crd, err := os.ReadFile("../../config/crd/scute.dev_moves.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(crd), "pattern: "+durationPattern+"\n") {
		t.Errorf("the schema of Move lacks the pattern %s", durationPattern)
	}
}
