package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/internal/supervise"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/pause/request"
	"scute.dev/pause/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testServer is an API server with Clusters and their Machines. It outlives the processes that
// drive pauses. Each Cluster has one Machine, whose controller acknowledges a pause at once unless
// it is silent.
type testServer struct {
	url string

	mu       sync.Mutex
	clusters map[string][]byte
	version  int
	silent   bool
	asleep   bool // the Machines still report that they are paused
	// denied makes the server refuse every write.
	denied bool
	// onEvaluate is called at each read of the objects below the Clusters.
	onEvaluate func()
}

// newTestServer has Cluster a, and Cluster b that a user has paused.
func newTestServer(t *testing.T) *testServer {
	t.Helper()
	w := &testServer{clusters: make(map[string][]byte)}
	for name, paused := range map[string]string{"a": `{}`, "b": `{"paused":true}`} {
		w.clusters[name] = []byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"fleet","name":"` + name + `","uid":"uid-` + name + `","resourceVersion":"1"},"spec":` + paused + `}`)
	}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// ServeHTTP serves get and patch of Clusters.
func (w *testServer) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	defer w.mu.Unlock()
	name := path.Base(r.URL.Path)
	code := http.StatusOK
	switch {
	case w.clusters[name] == nil:
		code = http.StatusNotFound
	case r.Method == http.MethodPatch && w.denied:
		code = http.StatusForbidden
	case r.Method == http.MethodPatch:
		code = w.patch(name, body)
	}
	answer := w.clusters[name]
	if code != http.StatusOK {
		reason := map[int]metav1.StatusReason{http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusConflict: metav1.StatusReasonConflict}
		answer, _ = json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason[code], Message: "the test refuses it", Code: int32(code)}) //nolint:gosec // a status code
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	_, _ = out.Write(answer)
}

func (w *testServer) patch(name string, body []byte) (code int) {
	var wanted, have unstructured.Unstructured
	if json.Unmarshal(body, &wanted.Object) != nil || json.Unmarshal(w.clusters[name], &have.Object) != nil ||
		wanted.GetUID() != have.GetUID() || wanted.GetResourceVersion() != "" && wanted.GetResourceVersion() != have.GetResourceVersion() {
		return http.StatusConflict
	}
	merged, err := jsonpatch.MergePatch(w.clusters[name], body)
	if err != nil {
		return http.StatusConflict
	}
	w.version++
	if err := json.Unmarshal(merged, &have.Object); err != nil {
		return http.StatusConflict
	}
	have.SetResourceVersion(strconv.Itoa(1 + w.version))
	w.clusters[name], _ = json.Marshal(have.Object)
	return http.StatusOK
}

func (w *testServer) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// clusterState reports whether a Cluster is paused, and returns its annotations.
func (w *testServer) clusterState(t *testing.T, name string) (paused bool, annotations map[string]string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var u unstructured.Unstructured
	if err := json.Unmarshal(w.clusters[name], &u.Object); err != nil {
		t.Fatal(err)
	}
	return object.Observe(&u).Cluster.Paused, u.GetAnnotations()
}

// Clusters implements runner.Finder.
func (w *testServer) Clusters(context.Context, string, string) ([]string, error) { return nil, nil }

// Graph implements runner.Finder.
func (w *testServer) Graph(_ context.Context, _ string, clusters []string) (hold.Graph, error) {
	return graph{w, clusters}, nil
}

type graph struct {
	server   *testServer
	clusters []string
}

// Kind implements hold.Graph.
func (graph) Kind(ref object.Ref) (kube.Type, error) {
	return kube.Type{Group: ref.Group, Kind: ref.Kind, Plural: strings.ToLower(ref.Kind) + "s", Versions: []string{"v1beta2"}, Namespaced: true}, nil
}

// Below implements hold.Graph. The condition of a Machine follows its Cluster, as if set by its controller.
func (g graph) Below(context.Context) (below []pause.Subject, _ []object.Observed, err error) {
	if g.server.onEvaluate != nil {
		g.server.onEvaluate()
	}
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	for _, name := range g.clusters {
		var u unstructured.Unstructured
		if err := json.Unmarshal(g.server.clusters[name], &u.Object); err != nil {
			return nil, nil, err
		}
		o := object.Observe(&u)
		says := object.False
		if o.Cluster.Paused {
			says = object.True
		}
		o.Paused, o.TopologyPaused = says, object.Absent
		m := object.Observed{Ref: machine(name), Version: "v1beta2", UID: "uid-m-" + o.UID, ClusterName: name, Paused: says, Machine: &object.MachineFacts{HasNode: true}}
		if g.server.silent {
			m.Paused = object.False
		}
		if g.server.asleep {
			m.Paused = object.True
		}
		below = append(below, pause.Subject{Observed: o, Cluster: name}, pause.Subject{Observed: m, Cluster: name})
	}
	return below, nil, nil
}

func machine(cluster string) object.Ref {
	return object.Ref{Group: object.CoreGroup, Kind: "Machine", Namespace: "fleet", Name: cluster + "-1"}
}

var errDead = errors.New("the process is dead")

// lifetime is a process that dies at one of its effects, before or after it. Effects are appends to
// the log and writes to the API server.
type lifetime struct {
	mu      sync.Mutex
	effects int
	at      int // 0: it does not die
	after   bool
	dead    bool
	stop    context.CancelFunc
}

func (l *lifetime) effect(do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errDead
	}
	l.effects++
	if l.effects == l.at && !l.after {
		l.die()
		return errDead
	}
	err := do()
	if l.effects == l.at {
		l.die()
		return errDead
	}
	return err
}

func (l *lifetime) die() {
	l.dead = true
	l.stop()
}

// processLog is the log of a process.
type processLog struct {
	aggregate.Log
	*lifetime
}

func (l processLog) Append(ctx context.Context, c eventlog.Commit) (r eventlog.Receipt, err error) {
	err = l.effect(func() error {
		r, err = l.Log.Append(ctx, c)
		return err
	})
	return r, err
}

// processTransport is the connection of a process to the API server.
type processTransport struct {
	http.RoundTripper
	*lifetime
}

func (c processTransport) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	if r.Method == http.MethodGet {
		return c.RoundTripper.RoundTrip(r)
	}
	err = c.effect(func() error {
		answer, err = c.RoundTripper.RoundTrip(r) //nolint:bodyclose // the client that made the request closes it
		return err
	})
	if err != nil && answer != nil {
		answer.Body.Close()
		answer = nil
	}
	return answer, err
}

// newProcess returns a runner of a process. It calls between instead of each wait.
func newProcess(t *testing.T, name string, l *lifetime, log aggregate.Log, w *testServer, between func()) *runner.Runner {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := kube.Connect(name, &rest.Config{Host: w.url, Transport: processTransport{transport, l}})
	if err != nil {
		t.Fatal(err)
	}
	return &runner.Runner{
		Log: processLog{log, l}, Incarnation: name, Cluster: c, Finder: w, Logger: slog.New(slog.DiscardHandler),
		Drivers: supervise.Drivers{After: func(time.Duration) <-chan time.Time {
			between()
			over := make(chan time.Time, 1)
			over <- time.Time{}
			return over
		}},
	}
}

// drive drives a pause in a process that may die.
func drive(t *testing.T, name string, l *lifetime, log aggregate.Log, w *testServer, id string, between func()) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.stop = cancel
	err := newProcess(t, name, l, log, w, between).Drive(ctx, id)
	if l.dead {
		return errDead
	}
	return err
}

// requester returns a runner that requests and releases pauses, as the controller does.
func requester(log aggregate.Log) *runner.Runner {
	return &runner.Runner{Log: log, Incarnation: "asker"}
}

func requestPause(t *testing.T, log aggregate.Log, id string) {
	t.Helper()
	minute := pause.Duration(time.Minute)
	spec := request.Spec{Namespace: "fleet", Name: "p", UID: "uid-" + id, Clusters: []string{"a", "b"}, Acknowledge: minute, Resume: minute}
	if err := requester(log).Request(t.Context(), id, "user/test", spec); err != nil {
		t.Fatal(err)
	}
}

// stateOf folds a pause from the log, as a new process would.
func stateOf(t *testing.T, log aggregate.Log, id string) (s request.State) {
	t.Helper()
	records, err := log.Read(t.Context(), eventlog.Aggregate{Kind: eventlog.KindPause, ID: id}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := request.NewCatalog().Fold(r, s.Apply); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// releaseWhen returns a function that releases a pause once it is in one of the phases.
func releaseWhen(t *testing.T, log aggregate.Log, id string, phases ...v1alpha1.PausePhase) func() {
	return func() {
		if s := stateOf(t, log, id); slices.Contains(phases, s.Phase) && !s.Releasing {
			if err := requester(log).Release(t.Context(), id, "user/test", "a test"); err != nil {
				t.Error(err)
			}
		}
	}
}

// checkRestored checks that a pause is released and that the Clusters are in their original state.
func (w *testServer) checkRestored(t *testing.T, s *request.State) {
	t.Helper()
	if s.Phase != v1alpha1.PauseReleased {
		t.Errorf("phase = %s, want Released", s.Phase)
	}
	for name, found := range map[string]bool{"a": false, "b": true} {
		if paused, annotations := w.clusterState(t, name); paused != found || len(annotations) > 0 {
			t.Errorf("Cluster %s: paused %t with annotations %v, want %t without annotations", name, paused, annotations, found)
		}
		if i := slices.IndexFunc(s.Roots, func(r pause.Root) bool { return r.Ref.Name == name }); i < 0 || s.Roots[i].Found != found {
			t.Errorf("recorded state of Cluster %s = %+v", name, s.Roots)
		}
	}
}
