package observe

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// TestReadNode checks how each answer of a tenant's API server for a Node is read. Only a Node contributes facts.
func TestReadNode(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		status int
		body   string
		want   remediator.NodeFacts
	}{
		"a Node": {
			200, `{"kind":"Node","status":{"conditions":[{"type":"KernelDeadlock","status":"True","reason":"Docker","lastTransitionTime":"2026-05-01T12:00:00Z"}]}}`,
			remediator.NodeFacts{Conditions: map[string]remediator.Condition{"KernelDeadlock": {Status: object.True, Reason: "Docker", Since: at}}},
		},
		"none":           {404, `{"kind":"Status"}`, remediator.NodeFacts{}},
		"refused":        {403, `secret`, remediator.NodeFacts{Err: "reading the Node: the API server answers 403 Forbidden"}},
		"not JSON":       {200, `<html>`, remediator.NodeFacts{Err: "reading the Node: the response of the API server is not a Node: invalid character '<' looking for beginning of value"}},
		"sent elsewhere": {302, ``, remediator.NodeFacts{Err: "reading the Node: the API server answers 302 Found"}},
		"endless":        {200, `{"a":"` + strings.Repeat("x", 1<<20), remediator.NodeFacts{Err: "reading the Node: it sends too much: more than 512 KiB"}},
		"many":           {200, `{"status":{"conditions":[` + strings.Repeat("{},", 100) + `{}]}}`, remediator.NodeFacts{Err: "reading the Node: the response of the API server is not a Node: one of its lists has more than 100 items"}},
		"none said":      {200, `{"status":{"conditions":null}}`, remediator.NodeFacts{Conditions: map[string]remediator.Condition{}}},
		"escapes": {
			200, `{"status":{"conditions":[{"type":"\u001b[2JReady","status":"True","reason":"a\nb"}]}}`,
			remediator.NodeFacts{Conditions: map[string]remediator.Condition{"[2JReady": {Status: object.True, Reason: "a b"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/prefix/api/v1/nodes/n1" {
					t.Errorf("requested path %s", r.URL.Path)
				}
				w.Header().Set("Location", "https://metadata.example.com")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			from, err := clusterAt(server.URL + "/prefix").Reader(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			if diff := cmp.Diff(c.want, readNode(ctx, from, "n1", nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
