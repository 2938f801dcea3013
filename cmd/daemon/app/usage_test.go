package app

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 30, 0, time.UTC)
	u := newUsage(usageLimits{Events: 100, Bytes: 1 << 20})
	u.count("busy", noon, 60, 10)
	u.count("busy", noon.Add(10*time.Minute), 39, 10)
	u.count("large", noon, 1, 1<<20)
	at := noon.Add(20 * time.Minute)
	if said := u.Exceeded("busy", at); said != "" {
		t.Errorf("99 of 100 events: %s", said)
	}
	u.count("busy", at, 1, 10)
	if said := u.Exceeded("busy", at); !strings.Contains(said, "100 events") || !strings.Contains(said, "2026-01-01T13:00:00Z") {
		t.Errorf("100 of 100 events: %q", said)
	}
	if said := u.Exceeded("large", at); !strings.Contains(said, "1048576 bytes") {
		t.Errorf("all bytes: %q", said)
	}
	if said := u.Exceeded("other", at); said != "" {
		t.Errorf("namespace without events: %s", said)
	}
	for _, ns := range []string{"busy", "large"} {
		if said := u.Exceeded(ns, noon.Add(time.Hour)); said != "" {
			t.Errorf("an hour later: %s", said)
		}
	}
	if said := newUsage(usageLimits{}).Exceeded("busy", at); said != "" {
		t.Errorf("without limits: %s", said)
	}
}

// TestNamespacesThatAreGone checks that counts of earlier namespaces are removed, and current ones kept.
func TestNamespacesThatAreGone(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 30, 0, time.UTC)
	u := newUsage(usageLimits{Events: 100})
	for i := range 1000 {
		at := noon.Add(time.Duration(i) * time.Minute)
		u.count(fmt.Sprintf("of-a-test-%d", i), at, 100, 10)
		for back := range min(i, usageSlots-1) {
			if ns := fmt.Sprintf("of-a-test-%d", i-back); u.Exceeded(ns, at) == "" {
				t.Fatalf("%s: its events of %d minutes ago were forgotten", ns, back)
			}
		}
	}
	if n := len(u.namespaces); n > 4*usageSlots {
		t.Errorf("%d namespaces are kept", n)
	}
}
