package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/push"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/supervise"
	"scute.dev/internal/trust"
	"scute.dev/kube/guard"
	"scute.dev/mover"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
)

// listening is the log of a daemon, and the same log as an operator reaches it.
func listening(t *testing.T) (daemons, asOperator *eventlog.Log) {
	t.Helper()
	const token = "the token of the operators"
	access := &embedded.Access{Accept: accept}
	daemons, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Access: access})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemons.Close() })
	access.Set(embedded.Operator, token)
	asOperator, err = eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: daemons.URL(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = asOperator.Close() })
	return daemons, asOperator
}

// TestPushedRunWithoutAWorkflowRun: the token of the log's operator alone brings the daemon to do nothing; a WorkflowRun that adopts what was
// pushed does.
func TestPushedRunWithoutAWorkflowRun(t *testing.T) {
	var calls atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}))
	defer api.Close()
	daemons, asOperator := listening(t)

	mine := logtest.Open(t)
	with := apiextensionsv1.JSON{Raw: []byte(`{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine"}}]}`)}
	spec := &v1alpha1.WorkflowRunSpec{ServiceAccountName: "privileged", Tasks: []v1alpha1.TaskSpec{{StepSpec: v1alpha1.StepSpec{Name: "a", Kind: "Apply", With: &with}}}}
	d, problems := workflow.Build(spec, workflow.Options{Namespace: "kube-system", Name: "x", Kind: func(string) (workflow.KindInfo, bool) { return workflow.KindInfo{}, true }})
	if d == nil {
		t.Fatal(problems)
	}
	const id = "kube-system/x/1"
	if err := (&runner.Runner{Log: mine, Origin: "a folder", Logger: slog.New(slog.DiscardHandler)}).Request(t.Context(), id, "daemon/forged", d); err != nil {
		t.Fatal(err)
	}
	p := &push.Push{From: mine, To: asOperator, Run: id, Actor: "user/somebody-else", FromName: "here", ToName: "there"}
	if _, err := p.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	digest, err := p.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	g, _ := guard.New(nil)
	env := newEnv(Options{}, &rest.Config{Host: api.URL}, &tenure{}, g, daemons, "one")
	r := newRunner(Options{RunParallel: 1, RunConcurrency: 1}, env, daemons, "one", slog.New(slog.DiscardHandler))
	adopts := ""
	r.Adopted = func(context.Context, string) (string, error) { return adopts, nil }
	for _, adopts = range []string{"", "another digest"} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		err := r.Drive(ctx, id)
		cancel()
		why := r.Throttled(id)
		if n := calls.Load(); n != 0 || !errors.Is(err, context.DeadlineExceeded) || why.Reason != supervise.NotAdopted || !strings.Contains(why.Message, digest) {
			t.Errorf("adopted %q: %d calls, %v, %+v", adopts, n, err, why)
		}
	}
	adopts = digest
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := r.Drive(ctx, id); calls.Load() == 0 || r.Throttled(id).Reason == supervise.NotAdopted {
		t.Errorf("an adopted run is not driven: %v", err)
	}
}

// TestOperatorsAppendDecisionsAlone: the listener takes no event of a daemon or a resource, and no beginning of anything but a run.
func TestOperatorsAppendDecisionsAlone(t *testing.T) {
	_, asOperator := listening(t)
	for name, c := range map[string]struct {
		kind    eventlog.Kind
		typ     string
		actor   string
		refused bool
	}{
		"decision":            {eventlog.KindMove, "dev.scute.move.resolved.v1", "user/a", false},
		"of a daemon":         {eventlog.KindMove, "dev.scute.move.resolved.v1", "daemon/one", true},
		"of a resource":       {eventlog.KindRun, "dev.scute.run.started.v1", "resource/ns/name", true},
		"of nobody":           {eventlog.KindRun, "dev.scute.run.started.v1", "", true},
		"move":                {eventlog.KindMove, "dev.scute.move.requested.v1", "user/a", true},
		"pause":               {eventlog.KindPause, "dev.scute.pause.requested.v1", "user/a", true},
		"backup":              {eventlog.KindBackup, "dev.scute.backup.configured.v1", "user/a", true},
		"remediation":         {eventlog.KindRemediation, "dev.scute.remediation.marked.v1", "user/a", true},
		"epochs dropped":      {eventlog.KindDaemon, "dev.scute.daemon.epochs-dropped.v1", "user/a", true},
		"a run that is local": {eventlog.KindRun, "dev.scute.run.started.v1", "user/a", false},
	} {
		ev := eventlog.Event{Type: c.typ, Actor: c.actor, Time: time.Now(), Data: []byte(`{}`)}
		for n, events := range [][]eventlog.Event{{ev}, {ev, ev}} { // one is stored in another form than several
			_, err := asOperator.Append(t.Context(), eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: c.kind, ID: fmt.Sprint(name, n)}, ID: "1", Events: events})
			if refused := errors.Is(err, eventlog.ErrPermission); refused != c.refused || !refused && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestDecisionsExist: the types that operators may append are of the catalogs.
func TestDecisionsExist(t *testing.T) {
	known := make(map[string]bool)
	for _, types := range []map[string]reflect.Type{mover.NewCatalog().Types(), trust.NewCatalog().Types(), eventlog.NewEpochCatalog().Types()} {
		for typ := range types {
			known[typ] = true
		}
	}
	for kind, names := range decisions {
		for _, name := range names {
			if typ := fmt.Sprintf("dev.scute.%s.%s.v1", kind, name); !known[typ] {
				t.Errorf("no catalog has %s", typ)
			}
		}
	}
}
