package move

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"scute.dev/eventlog/logtest"
	"scute.dev/mover/runner"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

const initialInputs = `{"clusters": ["a"], "to": {"kubeconfigSecretRef": {"name": "green"}}, "timeouts": {"create": "1h"}}`

// TestCorrectedInputs checks an attempt with inputs that a user changed after an earlier attempt started a move, and
// possibly completed it before a crash. The move must not count as the one of the new inputs, and its target must not
// be forgotten.
func TestCorrectedInputs(t *testing.T) {
	for _, k := range []*Kind{local(t), resource(t)} {
		for with, same := range map[string]bool{
			initialInputs: true,
			`{"clusters": ["a"], "to": {"kubeconfigSecretRef": {"name": "green"}}}`:                         true, // a timeout is not changed
			`{"clusters": ["b"], "to": {"kubeconfigSecretRef": {"name": "green"}}}`:                         false,
			`{"all": true, "to": {"kubeconfigSecretRef": {"name": "green"}}}`:                               false,
			`{"clusters": ["a"], "to": {"kubeconfigSecretRef": {"name": "blue"}}}`:                          false,
			`{"clusters": ["a"], "to": {"kubeconfigSecretRef": {"name": "green"}}, "carryStatus": ["A.b"]}`: false,
		} {
			for _, undoing := range []bool{false, true} {
				c := startedCall(t, undoing)
				recorded := false
				c.With = json.RawMessage(with)
				c.Record = func(context.Context, json.RawMessage, bool) error {
					recorded = true
					return context.Canceled // far enough
				}
				_, err := k.Run(t.Context(), c)
				if said := task.IsFinal(err) && strings.Contains(err.Error(), "started move"); said == same || recorded != same {
					t.Errorf("resource %t, undo %t, with %s: recorded %t, error %v", k.Resource, undoing, with, recorded, err)
				}
			}
		}
	}
}

// startedCall returns a call whose step has started a move; an undo has no record of it.
func startedCall(t *testing.T, undoing bool) *task.Call {
	t.Helper()
	c := &task.Call{Run: "fleet/run/1", Namespace: "fleet", Name: "run", ServiceAccount: "runs", Task: "move", Attempt: 2, Undoing: undoing, Logger: slog.New(slog.DiscardHandler)}
	if undoing {
		return c
	}
	c.Undo = json.RawMessage(`{"base": "b", "to": {"kubeconfigSecretRef": {"name": "green"}}}`)
	return c
}

func local(t *testing.T) *Kind {
	t.Helper()
	k := &Kind{Clusters: &access.Clusters{Local: true}, Log: logtest.Open(t)}
	for _, undoing := range []bool{false, true} {
		c := startedCall(t, undoing)
		var w With
		if err := json.Unmarshal([]byte(initialInputs), &w); err != nil {
			t.Fatal(err)
		}
		r := runner.Runner{Log: k.Log, Logger: c.Logger}
		if err := r.Request(t.Context(), k.localBase(c), "run/"+c.Run, moveSpec(c, w)); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// resource returns the daemon's kind, with an API server that has the Moves of the step and of its undo.
func resource(t *testing.T) *Kind {
	t.Helper()
	return daemons(t, func(w http.ResponseWriter, _, name string) {
		fmt.Fprintf(w, `{"apiVersion": "scute.dev/v1alpha1", "kind": "Move", "metadata": {"namespace": "fleet", "name": %q, "uid": "u", "annotations": {%q: %q}},
			"spec": {"selection": {"clusters": ["a"]}, "target": {"kubeconfigSecretRef": {"name": "green", "key": "value"}}, "timeouts": {"create": "1h"}}}`,
			name, access.StepKeyAnnotation, map[bool]string{false: startedCall(t, false).Key(), true: startedCall(t, true).Key()}[name == resourceBase(startedCall(t, true))])
	})
}

// daemons returns the daemon's kind, with an API server that calls move for requests about Moves.
func daemons(t *testing.T, move func(w http.ResponseWriter, method, name string)) *Kind {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(io.Discard, r.Body)
		switch path := r.URL.Path; {
		case path == "/api":
			fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
		case path == "/api/v1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []}`)
		case path == "/apis":
			fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "scute.dev",
				"versions": [{"groupVersion": "scute.dev/v1alpha1", "version": "v1alpha1"}], "preferredVersion": {"groupVersion": "scute.dev/v1alpha1", "version": "v1alpha1"}}]}`)
		case path == "/apis/scute.dev/v1alpha1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "scute.dev/v1alpha1", "resources": [
				{"name": "moves", "singularName": "move", "namespaced": true, "kind": "Move", "verbs": ["get"]}]}`)
		default:
			move(w, r.Method, path[strings.LastIndex(path, "/")+1:])
		}
	}))
	t.Cleanup(server.Close)
	return &Kind{Resource: true, Clusters: &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }}}
}
