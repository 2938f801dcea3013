package evidence

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/eventlog/seal"
)

func appendOne(t *testing.T, l *eventlog.Log, id string) {
	t.Helper()
	_, err := l.Append(t.Context(), eventlog.Commit{
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}, ID: id,
		Events: []eventlog.Event{{Type: "dev.scute.move.started.v1", Time: time.Unix(1, 0), Data: []byte(`{"id":"` + id + `"}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// alarms are the alarms of a publisher.
type alarms struct {
	mu       sync.Mutex
	recorded []string
}

func (a *alarms) record(violated bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recorded = append(a.recorded, fmt.Sprintf("%t %v", violated, err))
}

func publisher(t *testing.T, dir string, l *eventlog.Log, k seal.Key, places ...Destination) (*Publisher, *alarms) {
	t.Helper()
	s, err := seal.OpenSealer(dir, l, k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	public, err := k.Public(l.ID())
	if err != nil {
		t.Fatal(err)
	}
	a := &alarms{}
	return &Publisher{Log: l, Sealer: s, Key: public, Dir: dir, Destinations: places, Alarm: a.record}, a
}

// witness checks each checkpoint as specified by C2SP tlog-witness, with only its library.
type witness struct {
	key  seal.PublicKey
	size uint64
	last seal.Checkpoint
	down int
}

func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if w.down > 0 {
		w.down--
		http.Error(out, "down", http.StatusServiceUnavailable)
		return
	}
	body := bufio.NewReader(r.Body)
	line, _ := body.ReadString('\n')
	var old uint64
	if _, err := fmt.Sscanf(line, "old %d\n", &old); err != nil || r.URL.Path != "/w/add-checkpoint" {
		http.Error(out, "bad", http.StatusBadRequest)
		return
	}
	if old != w.size {
		out.Header().Set("Content-Type", sizeType)
		out.WriteHeader(http.StatusConflict)
		fmt.Fprintln(out, w.size)
		return
	}
	for line != "\n" && line != "" {
		line, _ = body.ReadString('\n')
	}
	var note strings.Builder
	_, _ = body.WriteTo(&note)
	c, err := seal.OpenCheckpoint([]byte(note.String()), w.key)
	if err != nil {
		http.Error(out, err.Error(), http.StatusForbidden)
		return
	}
	if c.Size == w.size && w.size > 0 && c != w.last {
		out.WriteHeader(http.StatusConflict)
		return
	}
	w.size, w.last = c.Size, c
}

// TestPublish checks that checkpoints are published to all destinations, also after a restart, and
// that publishing succeeds after a witness was unavailable or knew a later checkpoint.
func TestPublish(t *testing.T) {
	dir := t.TempDir()
	l := logtest.OpenIn(t, filepath.Join(dir, "log"))
	k, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	public, err := k.Public(l.ID())
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{key: public, down: 1}
	server := httptest.NewServer(w)
	defer server.Close()
	clients := fake.NewClientset()
	places := func() []Destination {
		return []Destination{
			&ConfigMap{Client: clients.CoreV1().ConfigMaps("s"), Object: "audit"}, &Folder{Path: filepath.Join(dir, "kept")},
			&Witness{URL: server.URL + "/w", Client: server.Client()},
		}
	}
	for life := range 2 {
		p, told := publisher(t, filepath.Join(dir, seal.Folder), l, k, places()...)
		for n := range 2 {
			appendOne(t, l, fmt.Sprintf("m%d-%d", life, n))
			p.Publish(t.Context())
		}
		if err := p.recheck(t.Context()); err != nil {
			t.Error(err)
		}
		want := uint64(2*life + 2) //nolint:gosec // small
		found, err := clients.CoreV1().ConfigMaps("s").Get(t.Context(), "audit", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := seal.OpenCheckpoint([]byte(found.Data[CheckpointField]), public)
		if err != nil || c.Size != want || found.Data[sequenceField] != fmt.Sprint(want) || found.Data[logField] != l.ID() || found.Labels[Label] != LabelCheckpoint {
			t.Errorf("data of the ConfigMap = %v, error %v", found.Data, err)
		}
		all, err := os.ReadFile(filepath.Join(dir, "kept", checkpointsFile))
		if notes := seal.SplitNotes(all); err != nil || len(notes) != int(want) { //nolint:gosec // small
			t.Errorf("the folder has %d checkpoints, error %v", len(notes), err)
		}
		if tree, err := seal.ReadTree(filepath.Join(dir, "kept")); err != nil || tree.Size() != want {
			t.Errorf("the folder lacks hashes up to %d: %v", want, err)
		}
		if w.last != c {
			t.Errorf("checkpoint of the witness = %v, want %v", w.last, c)
		}
		if len(told.recorded) > 0 {
			t.Errorf("unexpected alarms %q", told.recorded)
		}
		if err := p.Sealer.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNeverOverAnother checks that the checkpoints of another log are not replaced, and that each
// destination raises an alarm with the reason.
func TestNeverOverAnother(t *testing.T) {
	k, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	clients := fake.NewClientset()
	kept := t.TempDir()
	published := func(id string, n int) (*Publisher, *alarms) {
		l := logtest.Open(t)
		for i := range n {
			appendOne(t, l, fmt.Sprintf("%s-%d", id, i))
		}
		p, told := publisher(t, t.TempDir(), l, k, &ConfigMap{Client: clients.CoreV1().ConfigMaps("s"), Object: "audit"}, &Folder{Path: kept})
		p.Publish(t.Context())
		return p, told
	}
	if _, told := published("a", 3); len(told.recorded) > 0 {
		t.Fatal(told.recorded)
	}
	before, err := clients.CoreV1().ConfigMaps("s").Get(t.Context(), "audit", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 5} {
		p, told := published("b", n)
		if len(told.recorded) != 2 || !strings.HasPrefix(told.recorded[0], "true") || !strings.Contains(told.recorded[0], "another log") || !strings.Contains(told.recorded[0], "scutectl audit verify") {
			t.Errorf("alarms = %q", told.recorded)
		}
		if s := p.States()["ConfigMap audit"]; !s.Violated || !errors.Is(s.Err, errInconsistent) {
			t.Errorf("state = %v, want Violated", s)
		}
	}
	after, err := clients.CoreV1().ConfigMaps("s").Get(t.Context(), "audit", metav1.GetOptions{})
	if err != nil || before.Data[CheckpointField] != after.Data[CheckpointField] {
		t.Errorf("the published checkpoint was replaced: %v", err)
	}
}

// racedDestination is a destination to which another process publishes before its first read.
type racedDestination struct {
	Destination
	publish func()
}

func (o *racedDestination) Last(ctx context.Context) ([]byte, error) {
	if by := o.publish; by != nil {
		o.publish = nil
		by()
	}
	return o.Destination.Last(ctx)
}

// TestOvertaken checks that no alarm is raised if a process that took over has published later checkpoints: no commits
// are lost.
func TestOvertaken(t *testing.T) {
	k, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	l := logtest.Open(t)
	public, err := k.Public(l.ID())
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{key: public}
	server := httptest.NewServer(w)
	defer server.Close()
	clients := fake.NewClientset().CoreV1().ConfigMaps("s")
	places := func() []Destination {
		return []Destination{&ConfigMap{Client: clients, Object: "audit"}, &Witness{URL: server.URL + "/w", Client: server.Client()}}
	}
	next, nexts := publisher(t, t.TempDir(), l, k, places()...)
	more := func(id string) func() {
		return func() {
			appendOne(t, l, id)
			next.Publish(t.Context())
		}
	}
	own := places()
	before, told := publisher(t, t.TempDir(), l, k, &racedDestination{own[0], more("b")}, &racedDestination{own[1], more("c")})
	appendOne(t, l, "a")
	before.Publish(t.Context())
	if len(told.recorded)+len(nexts.recorded) > 0 {
		t.Errorf("alarms = %q, and of the other process %q", told.recorded, nexts.recorded)
	}
	for name, s := range before.States() {
		if s.Violated || s.Err != nil || name != "ConfigMap audit" && s.Size != 3 {
			t.Errorf("%s: state %+v", name, s)
		}
	}
	if w.size != 3 {
		t.Errorf("the witness has %d commits, want 3", w.size)
	}
}

// TestPermitted compares a checkpoint with those of trees that lost commits or have other commits.
func TestPermitted(t *testing.T) {
	k, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	public, err := k.Public("x")
	if err != nil {
		t.Fatal(err)
	}
	of := func(data ...string) Publication {
		tree, err := seal.OpenTree(t.TempDir(), 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tree.Close() })
		var h seal.Hasher
		for i, d := range data {
			if err := tree.Append(h.Hash(eventlog.NewRecord(uint64(i+1), time.Time{}, "", nil, []byte(d)))); err != nil { //nolint:gosec // small
				t.Fatal(err)
			}
		}
		if err := tree.Sync(); err != nil {
			t.Fatal(err)
		}
		c := seal.Checkpoint{LogID: "x", Size: tree.Size()}
		if c.Root, err = tree.Root(c.Size); err != nil {
			t.Fatal(err)
		}
		signed, err := c.Sign(k)
		if err != nil {
			t.Fatal(err)
		}
		return Publication{Checkpoint: c, Signed: signed, Key: public, Tree: tree}
	}
	for _, c := range []struct {
		name        string
		before, now Publication
		want        string
	}{
		{"continues", of("a", "b"), of("a", "b", "c"), ""},
		{"the same", of("a", "b"), of("a", "b"), "same"},
		{"went back", of("a", "b", "c"), of("a", "b"), "commits were lost"},
		{"changed", of("a", "b", "c"), of("a", "x", "c", "d"), "were changed"},
		{"changed, of one size", of("a", "b", "c"), of("a", "x", "c"), "were changed"},
	} {
		same, err := checkPublication(c.now, c.before.Signed)
		switch {
		case c.want == "same" && same && err == nil, c.want == "" && !same && err == nil:
		case c.want != "" && errors.Is(err, errInconsistent) && strings.Contains(err.Error(), c.want):
		default:
			t.Errorf("%s: permitted = %t, error %v", c.name, same, err)
		}
	}
}

// TestSecretKey checks that a key is created only once.
func TestSecretKey(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("s")
	first, err := SecretKey(t.Context(), secrets, "key")
	if err != nil {
		t.Fatal(err)
	}
	again, err := SecretKey(t.Context(), secrets, "key")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := first.Public("x")
	if b, _ := again.Public("x"); a != b {
		t.Error("the second start has another key")
	}
	if found, err := secrets.Get(context.Background(), "key", metav1.GetOptions{}); err != nil || found.Immutable == nil || !*found.Immutable {
		t.Errorf("the Secret is not immutable, error %v", err)
	}
	if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Data: map[string][]byte{keyField: []byte("hunter2")}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := SecretKey(t.Context(), secrets, "bad"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error = %v, want one without the content", err)
	}
}
