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

	"github.com/nats-io/nats.go"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/controllertest"
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

const operatorsToken = "the token of the operators"

// openListening returns the log of a daemon, and the same log as an operator's client.
func openListening(t *testing.T) (daemons, asOperator *eventlog.Log) {
	t.Helper()
	access := &embedded.Access{Accept: checkAppend}
	daemons, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Access: access})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemons.Close() })
	access.Set(embedded.Operator, operatorsToken)
	asOperator, err = eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: daemons.URL(), Token: operatorsToken})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = asOperator.Close() })
	return daemons, asOperator
}

// newForgedRun returns the daemon's runner with a run that a client wrote directly to the log, as a
// user of an external NATS server can. The run applies an object as a ServiceAccount of
// kube-system. forged also returns the run's digest and the number of API server calls.
func newForgedRun(t *testing.T, id string) (r *runner.Runner, digest string, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}))
	t.Cleanup(api.Close)
	daemons, mine := logtest.Open(t), logtest.Open(t)
	with := apiextensionsv1.JSON{Raw: []byte(`{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine"}}]}`)}
	spec := &v1alpha1.WorkflowRunSpec{ServiceAccountName: "privileged", Tasks: []v1alpha1.TaskSpec{{StepSpec: v1alpha1.StepSpec{Name: "a", Kind: "Apply", With: &with}}}}
	d, problems := workflow.Build(spec, workflow.Options{Namespace: "kube-system", Name: "x", Kind: func(string) (workflow.KindInfo, bool) { return workflow.KindInfo{}, true }})
	if d == nil {
		t.Fatal(problems)
	}
	if err := (&runner.Runner{Log: mine, Origin: "a folder", Logger: slog.New(slog.DiscardHandler)}).Request(t.Context(), id, "daemon/forged", d); err != nil {
		t.Fatal(err)
	}
	records, err := mine.Read(t.Context(), eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}, 0)
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for _, record := range records {
		events, err := record.Events()
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			events[i].Actor = "user/somebody-else"
			digest = runner.Digest(digest, events[i])
		}
		receipt, err := daemons.Append(t.Context(), eventlog.Commit{Aggregate: record.Aggregate, ID: record.CommitID, Expected: last, Events: events})
		if err != nil {
			t.Fatal(err)
		}
		last = receipt.Seq
	}
	g, _ := guard.New(nil)
	env := newEnv(Options{}, &rest.Config{Host: api.URL}, &tenure{}, g, daemons, "one")
	return newRunner(Options{RunParallel: 1, RunConcurrency: 1}, env, daemons, "one", slog.New(slog.DiscardHandler)), digest, calls
}

// TestForgedRunWithoutAWorkflowRun checks that the daemon does nothing for a run that a client wrote until a
// WorkflowRun adopts it.
func TestForgedRunWithoutAWorkflowRun(t *testing.T) {
	const id = "kube-system/x/1"
	r, digest, calls := newForgedRun(t, id)
	adopts := ""
	for _, adopts = range []string{"", "another digest"} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		err := r.Drive(ctx, id)
		cancel()
		why := r.Throttled(id)
		if n := calls.Load(); n != 0 || !errors.Is(err, context.DeadlineExceeded) || why.Reason != supervise.NotAdopted || !strings.Contains(why.Message, digest) {
			t.Errorf("adopted with %q: got %d calls, error %v, %+v", adopts, n, err, why)
		}
		r.Adopted = func(context.Context, string) (string, error) { return adopts, nil } // without Adopted, a daemon drives no forged run
	}
	adopts = digest
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := r.Drive(ctx, id); calls.Load() == 0 || r.Throttled(id).Reason == supervise.NotAdopted {
		t.Errorf("an adopted run is not driven: %v", err)
	}
}

// TestAdopted checks that a WorkflowRun adopts only its own run, not that of a recreated WorkflowRun of the same name
// or another run.
func TestAdopted(t *testing.T) {
	w := &v1alpha1.WorkflowRun{}
	w.Namespace, w.Name, w.UID, w.Annotations = "fleet", "x", "0123456789", map[string]string{v1alpha1.AdoptedAnnotation: "digest"}
	of := adoptedRun(controllertest.Client(t, w))
	for id, want := range map[string]string{"fleet/x/01234567": "digest", "fleet/x/76543210": "", "other/x/01234567": "", "x": ""} {
		if got, err := of(t.Context(), id); got != want || err != nil {
			t.Errorf("%s: got %q, %v", id, got, err)
		}
	}
}

// TestForgedRunOfAnotherNamespace checks that a WorkflowRun does not adopt a run whose tasks would act in another
// namespace.
func TestForgedRunOfAnotherNamespace(t *testing.T) {
	for _, id := range []string{"tenant/x/1", "kube-system/y/1", "x"} {
		r, digest, calls := newForgedRun(t, id)
		r.Adopted = func(context.Context, string) (string, error) { return digest, nil }
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		err := r.Drive(ctx, id)
		cancel()
		if n, why := calls.Load(), r.Throttled(id); n != 0 || !errors.Is(err, context.DeadlineExceeded) || why.Reason != supervise.NotAdopted || !strings.Contains(why.Message, "kube-system/x") {
			t.Errorf("%s: got %d calls, error %v, %+v", id, n, err, why)
		}
	}
}

// TestOperatorsAppendDecisionsAlone checks that the listener rejects events of daemons and resources, and events that
// start anything.
func TestOperatorsAppendDecisionsAlone(t *testing.T) {
	_, asOperator := openListening(t)
	for name, c := range map[string]struct {
		kind    eventlog.Kind
		typ     string
		actor   string
		refused bool
	}{
		"decision":         {eventlog.KindMove, "dev.scute.move.resolved.v1", "user/a", false},
		"of a daemon":      {eventlog.KindMove, "dev.scute.move.resolved.v1", "daemon/one", true},
		"of a resource":    {eventlog.KindRun, "dev.scute.run.started.v1", "resource/ns/name", true},
		"of nobody":        {eventlog.KindRun, "dev.scute.run.started.v1", "", true},
		"move":             {eventlog.KindMove, "dev.scute.move.requested.v1", "user/a", true},
		"pause":            {eventlog.KindPause, "dev.scute.pause.requested.v1", "user/a", true},
		"backup":           {eventlog.KindBackup, "dev.scute.backup.configured.v1", "user/a", true},
		"remediation":      {eventlog.KindRemediation, "dev.scute.remediation.marked.v1", "user/a", true},
		"run":              {eventlog.KindRun, "dev.scute.run.started.v1", "user/a", true},
		"output of a task": {eventlog.KindRun, "dev.scute.run.task-succeeded.v1", "user/a", true},
		"of a run":         {eventlog.KindRun, "dev.scute.run.paused.v1", "user/a", false},
		// The daemon could neither read these nor act on their objects.
		"of a newer run":  {eventlog.KindRun, "dev.scute.run.paused.v9", "user/a", true},
		"of a newer move": {eventlog.KindMove, "dev.scute.move.resolved.v9", "user/a", true},
	} {
		ev := eventlog.Event{Type: c.typ, Actor: c.actor, Time: time.Now(), Data: []byte(`{}`)}
		for n, events := range [][]eventlog.Event{{ev}, {ev, ev}} { // a single event is stored in another form than several
			_, err := asOperator.Append(t.Context(), eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: c.kind, ID: fmt.Sprint(name, n)}, ID: "1", Events: events})
			if refused := errors.Is(err, eventlog.ErrPermission); refused != c.refused || !refused && err != nil {
				t.Errorf("%s: Append = %v", name, err)
			}
		}
	}
}

// TestDecisionsExist checks that the event types that operators may append exist in a catalog.
func TestDecisionsExist(t *testing.T) {
	known := make(map[string]bool)
	for _, types := range []map[string]reflect.Type{workflow.NewCatalog().Types(), mover.NewCatalog().Types(), trust.NewCatalog().Types()} {
		for typ := range types {
			known[typ] = true
		}
	}
	for of, names := range decisions {
		kind, _, _ := strings.Cut(of, "/")
		for _, name := range names {
			if typ := fmt.Sprintf("dev.scute.%s.%s.v1", kind, name); !known[typ] {
				t.Errorf("no catalog has type %s", typ)
			}
		}
	}
}

// TestOperatorsStopNoDaemon checks that clients can append only events to the log's own aggregate that the daemon can
// read.
func TestOperatorsStopNoDaemon(t *testing.T) {
	daemons, asOperator := openListening(t)
	for name, c := range map[string]struct {
		of      eventlog.Aggregate
		typ     string
		data    string
		refused bool
	}{
		"reconciled":         {trust.Aggregate(), "dev.scute.daemon.reconciled.v1", `{"cluster":"u"}`, false},
		"of a later version": {trust.Aggregate(), "dev.scute.daemon.reconciled.v9", `{}`, true},
		"with another field": {trust.Aggregate(), "dev.scute.daemon.reconciled.v1", `{"later":1}`, true},
	} {
		ev := eventlog.Event{Type: c.typ, Actor: "user/a", Time: time.Now(), Data: []byte(c.data)}
		_, err := asOperator.Append(t.Context(), eventlog.Commit{Aggregate: c.of, ID: name, Events: []eventlog.Event{ev}})
		if refused := errors.Is(err, eventlog.ErrPermission) || errors.Is(err, eventlog.ErrConflict); refused != c.refused || !refused && err != nil {
			t.Errorf("%s: Append = %v", name, err)
		}
	}
	view := trust.NewView()
	if _, err := daemons.Replay(t.Context(), 0, view.Apply); err != nil {
		t.Error(err)
	}
	if state, _ := view.State(); state.UnreadableReason != "" {
		t.Errorf("the log is unreadable: %s", state.UnreadableReason)
	}
}

// TestTypesInHeaders checks that the types in a client's header are accepted only if they match the events, and that a
// short header cannot expand to a large list.
func TestTypesInHeaders(t *testing.T) {
	daemons, _ := openListening(t)
	nc, err := nats.Connect(daemons.URL(), nats.Token(operatorsToken))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for types, refused := range map[string]bool{"dev.scute.run.paused.v1": false, strings.Repeat("a*1048576,", 100): true, "dev.scute.run.ended.v1": true} {
		m := &nats.Msg{
			Subject: "scute.log.run.a", Header: nats.Header{"Content-Type": {"application/cloudevents-batch+json"}, "Scute-Types": {types}},
			Data: []byte(`[{"specversion":"1.0","id":"1","source":"s","type":"dev.scute.run.paused.v1","time":"2026-01-01T00:00:00Z","actor":"user/a","data":{}}]`),
		}
		reply, err := nc.RequestMsgWithContext(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(reply.Data), `"error"`) != refused {
			t.Errorf("header %.40s: got %s", types, reply.Data)
		}
	}
}

// TestCommitsWithoutEvents checks that a client cannot bypass the list of decisions with a commit without events, which
// would be the first commit of an object that a resource is about to start.
func TestCommitsWithoutEvents(t *testing.T) {
	daemons, _ := openListening(t)
	nc, err := nats.Connect(daemons.URL(), nats.Token(operatorsToken))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, of := range []string{"run.a", "pause.a", "remediation.a", "daemon.log"} {
		m := &nats.Msg{Subject: "scute.log." + of, Header: nats.Header{"Content-Type": {"application/cloudevents-batch+json"}}, Data: []byte("[]")}
		reply, err := nc.RequestMsgWithContext(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(reply.Data), `"error"`) {
			t.Errorf("%s: got %s, want an error", of, reply.Data)
		}
	}
}
