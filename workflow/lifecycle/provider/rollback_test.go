package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/apply"
)

// manager is an API server with one Cluster until it is deleted.
type manager struct {
	mu                sync.Mutex
	stepKey           string // of the run that created the Cluster
	recreated         bool   // another client creates a Cluster of its name once it is gone
	deleted           bool
	kubeconfigRemoved bool // the Secret with the kubeconfig is deleted
}

func (m *manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.Copy(io.Discard, r.Body)
	say := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	switch path := r.URL.Path; {
	case path == "/api":
		say(`{"kind": "APIVersions", "versions": ["v1"]}`)
	case path == "/api/v1":
		say(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
			{"name": "secrets", "singularName": "secret", "namespaced": true, "kind": "Secret", "verbs": ["get", "delete"]}]}`)
	case path == "/apis":
		say(`{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "cluster.x-k8s.io",
			"versions": [{"groupVersion": "cluster.x-k8s.io/v1beta2", "version": "v1beta2"}], "preferredVersion": {"groupVersion": "cluster.x-k8s.io/v1beta2", "version": "v1beta2"}}]}`)
	case path == "/apis/cluster.x-k8s.io/v1beta2":
		var resources []string
		for _, kind := range []string{"Cluster", "MachineDeployment", "MachineSet", "MachinePool", "Machine"} {
			resources = append(resources, fmt.Sprintf(`{"name": %q, "singularName": %q, "namespaced": true, "kind": %q, "verbs": ["get", "list", "delete"]}`,
				strings.ToLower(kind)+"s", strings.ToLower(kind), kind))
		}
		say(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "cluster.x-k8s.io/v1beta2", "resources": [%s]}`, strings.Join(resources, ","))
	case strings.HasSuffix(path, "/clusters/prod") && !m.deleted:
		m.deleted = r.Method == http.MethodDelete
		say(`{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"namespace": "fleet", "name": "prod", "uid": "u-1", "annotations": {%q: %q}}}`,
			access.StepKeyAnnotation, m.stepKey)
	case strings.HasSuffix(path, "/clusters/prod") && m.recreated:
		say(`{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"namespace": "fleet", "name": "prod", "uid": "u-2"}}`)
	case strings.HasSuffix(path, "/clusters/prod"):
		w.WriteHeader(http.StatusNotFound)
		say(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	case strings.HasSuffix(path, "/secrets/prod-access"):
		m.kubeconfigRemoved = m.kubeconfigRemoved || r.Method == http.MethodDelete
		say(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "fleet", "name": "prod-access", "uid": "s-1", "annotations": {%q: "fleet/other/1"}}}`, access.StepKeyAnnotation)
	case path == "/apis/cluster.x-k8s.io/v1beta2/clusters":
		item, next := `{"metadata": {"namespace": "fleet", "name": "prod"}}`, "more"
		if r.FormValue("continue") != "" {
			item, next = `{"metadata": {"namespace": "other", "name": "prod"}}`, ""
		}
		if r.FormValue("limit") == "" {
			item = "" // there is no room in memory for all of them
		}
		say(`{"kind": "ClusterList", "apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": {"continue": %q}, "items": [%s]}`, next, item)
	default: // a list of one of the kinds
		say(`{"kind": "List", "apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": {}, "items": []}`)
	}
}

type steps struct{ Context }

// undo undoes a creation with the given record.
func undo(t *testing.T, m *manager, local bool, record string) error {
	t.Helper()
	server := httptest.NewServer(m)
	defer server.Close()
	clusters := &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: local}
	create := hook.Task[steps, steps]("create")
	s := Then(Begin(clusters, steps{}),
		Do(create, 0, func(*steps) error { return nil }, func(c *steps) error {
			return Target{Context: &c.Context, Cluster: Cluster{Namespace: "fleet", Name: "prod"}}.UndoCreate(&apply.Kind{Clusters: clusters}, t.TempDir())
		}))
	made, problems := s.Build(hook.NewBinder(create.Point()))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return made.Kinds["Create"].Undo(t.Context(), &task.Call{
		Run: "fleet/create/1", Task: "create", Attempt: 1, Namespace: "fleet", ServiceAccount: "runs", Undo: json.RawMessage(record),
		Progress: func(string) {}, Logger: slog.New(slog.DiscardHandler),
	})
}

// TestRollbackLeavesTheClusterOfAnother checks that a rollback deletes only a Cluster with the annotation of the run,
// or with the UID that the run recorded. Another client may have created a Cluster of the name after the run crashed or
// failed without creating one, or after the run's Cluster was deleted.
func TestRollbackLeavesTheClusterOfAnother(t *testing.T) {
	const own = "fleet/create/1/create@objects"
	applied := func(action, uid string) string {
		return fmt.Sprintf(`, "output": {"objects": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "namespace": "fleet", "name": "prod", "uid": %q, "action": %q}]}`, uid, action)
	}
	for name, c := range map[string]struct {
		mark, output     string
		adopted, remade  bool
		deleted, refused bool
	}{
		"of another, nothing was applied":                {adopted: true},
		"of another":                                     {refused: true},
		"of another run":                                 {mark: "fleet/other/1/create@objects", refused: true},
		"of this run, which died":                        {mark: own, deleted: true},
		"of this run, and without its mark":              {output: applied("created", "u-1"), deleted: true},
		"of this run, and moved back":                    {mark: own, output: applied("created", "u-0"), deleted: true},
		"of this run, one among many":                    {mark: own, output: `, "output": {"objects": [], "more": 7}`, deleted: true},
		"of another, who made it before a later attempt": {mark: "fleet/other/1/create@objects", output: applied("none", "u-1"), refused: true},
		"of another, after that of this run was deleted": {output: applied("created", "u-0"), refused: true},
		"of another, while that of this run is deleted":  {mark: own, remade: true, deleted: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &manager{stepKey: c.mark, recreated: c.remade}
			err := undo(t, m, true, fmt.Sprintf(`{"parts": [{"name": "cluster", "undo": {}}, {"name": "objects", "adopted": %t, "undo": {"objects": []}%s}]}`, c.adopted, c.output))
			if c.refused != (err != nil) || err != nil && !task.IsFinal(err) {
				t.Error(err)
			}
			if m.deleted != c.deleted {
				t.Errorf("deleted = %t, want %t", m.deleted, c.deleted)
			}
		})
	}
}

// TestRollbackKeepsTheWayToAnEarlierCluster checks that the rollback of a failed creation over an existing Cluster
// keeps the Secret that gives access to it.
func TestRollbackKeepsTheWayToAnEarlierCluster(t *testing.T) {
	for record, want := range map[string]bool{
		``: false,
		`{"parts": [{"name": "cluster", "undo": {"existed": true}}, {"name": "objects", "undo": {"objects": []}}]}`: false,
		`{"parts": [{"name": "cluster", "undo": {}}, {"name": "objects", "undo": {"objects": []}}]}`:                true,
	} {
		m := &manager{stepKey: "fleet/create/1/create@objects"}
		if err := undo(t, m, false, record); err != nil {
			t.Error(err)
		}
		if m.kubeconfigRemoved != want {
			t.Errorf("record %s: Secret prod-access deleted %t, want %t", record, m.kubeconfigRemoved, want)
		}
	}
}

// TestDeletionLeavesAnotherCluster checks that the objects of a Cluster are kept that is created while another one of
// its name is deleted, for example by GitOps.
func TestDeletionLeavesAnotherCluster(t *testing.T) {
	for _, remade := range []bool{false, true} {
		m := &manager{recreated: remade}
		server := httptest.NewServer(m)
		defer server.Close()
		clusters := &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}
		c := NewContext(t.Context(), &task.Call{
			Run: "fleet/delete/1", Task: "delete-cluster", Record: func(context.Context, json.RawMessage, bool) error { return nil },
		}, clusters)
		refused := errors.New("refused")
		err := Target{Context: &c, Cluster: Cluster{Namespace: "fleet", Name: "prod"}}.Delete(nil, func() error { return refused })
		if !errors.Is(err, refused) || m.deleted {
			t.Errorf("Delete without permission = %v, deleted %t", err, m.deleted)
		}
		err = Target{Context: &c, Cluster: Cluster{Namespace: "fleet", Name: "prod"}}.Delete(nil, func() error { return nil })
		switch {
		case !m.deleted:
			t.Errorf("the cluster is not deleted: %v", err)
		case !remade && err != nil:
			t.Error(err)
		case remade && (!task.IsFinal(err) || !strings.Contains(err.Error(), "another Cluster fleet/prod")):
			t.Errorf("Delete while another Cluster has the name = %v, want a final error", err)
		}
	}
}

// TestOthers checks that a Cluster of the same name in another namespace counts as another one, and that all are listed
// in pages.
func TestOthers(t *testing.T) {
	server := httptest.NewServer(&manager{})
	defer server.Close()
	clusters := &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}
	c := NewContext(t.Context(), &task.Call{Run: "run", Task: "task"}, clusters)
	others, err := Target{Context: &c, Cluster: Cluster{Namespace: "fleet", Name: "prod"}}.OtherClusters()
	if err != nil || strings.Join(others, " ") != "other/prod" {
		t.Errorf("Others = %v, error %v, want other/prod", others, err)
	}
}
