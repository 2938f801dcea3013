package transfer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"scute.dev/kube"
	"scute.dev/kube/guard"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// requests records the requests to an API server by method and last element of the path. made returns them and starts
// again.
func requests(api *fakeAPI) (made func() []string) {
	var mu sync.Mutex
	var list []string
	api.hook = func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, r.Method+" "+r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		taken := slices.Clone(list)
		list = nil
		return taken
	}
}

// TestWhole checks that each object is read once, with lists for many objects. Sparse or missing objects, and Secrets
// without the label of the list, are read individually.
func TestWhole(t *testing.T) {
	api := newFakeAPI(t)
	machine := func(i int) object.Ref { return capi("Machine", fmt.Sprintf("m-%02d", i)) }
	secret := func(i int) object.Ref {
		return object.Ref{Kind: "Secret", Namespace: "fleet", Name: fmt.Sprintf("s-%02d", i)}
	}
	for i := range 100 {
		api.put(machine(i), nil)
		content := obj{}
		if i%2 == 0 {
			content = obj{"metadata": obj{"labels": obj{"cluster.x-k8s.io/cluster-name": "a"}}}
		}
		api.put(secret(i), content)
	}
	tr := &Transfer{Source: api.cluster(t, "source")}
	if err := tr.connect(t.Context(), mover.Spec{}, "", false); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ref           func(int) object.Ref
		from, to      int
		seen          bool // whether the number of objects in the namespace is known
		lists, single int
	}{
		"few":               {machine, 0, maxSingleReads, true, 0, maxSingleReads},
		"many":              {machine, 0, 50, true, 1, 0},
		"sparse":            {machine, 0, 100/sparseRatio - 1, true, 0, 100/sparseRatio - 1},
		"of unknown number": {machine, 0, 100/sparseRatio - 1, false, 1, 0},
		"not there":         {machine, 90, 110, true, 1, 10},
		"without the label": {secret, 0, 100, true, 1, 50},
	} {
		t.Run(name, func(t *testing.T) {
			tr.sizes = sizes{}
			if c.seen {
				for _, kind := range []string{"Machine." + object.CoreGroup, "Secret"} {
					if err := tr.listAll(t.Context(), []listing{{side: tr.Source, typ: tr.sourceTypes[kind], namespace: "fleet"}}, func(object.Ref, *unstructured.Unstructured) {}); err != nil {
						t.Fatal(err)
					}
				}
			}
			made := requests(api)
			var want []wanted
			for i := c.from; i < c.to; i++ {
				want = append(want, wanted{tr.sourceTypes[c.ref(i).GroupKind()], c.ref(i)})
			}
			times := make([]int, len(want))
			err := readEach(t.Context(), tr, tr.Source, want, func(_ context.Context, i int, u *unstructured.Unstructured) (int, error) {
				if there := c.from+i < 100; there != (u != nil) || there && u.GetName() != want[i].ref.Name {
					return 0, fmt.Errorf("%s: got %v", want[i].ref, u)
				}
				return i, nil
			}, func(batch []int) error {
				for _, i := range batch {
					times[i]++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if slices.Min(times) != 1 || slices.Max(times) != 1 {
				t.Errorf("not every object was processed once: %v", times)
			}
			lists, single := 0, 0
			for _, r := range made() {
				if strings.Contains(r, "-") {
					single++
				} else {
					lists++
				}
			}
			if lists != c.lists || single != c.single {
				t.Errorf("%d lists and %d single reads, want %d and %d", lists, single, c.lists, c.single)
			}
		})
	}
}

// TestWholeIsBounded checks that lists are concurrent, but limited by the number of objects in memory.
func TestWholeIsBounded(t *testing.T) {
	const each = maxInMemory/2 + 1
	kinds := []string{"Cluster", "ClusterClass", "Machine", "MachineSet"}
	for name, c := range map[string]struct{ each, most int }{"few": {maxSingleReads + 1, len(kinds)}, "many": {each, 1}} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			tr := &Transfer{Source: api.cluster(t, "source")}
			if err := tr.connect(t.Context(), mover.Spec{}, "", false); err != nil {
				t.Fatal(err)
			}
			var want []wanted
			for _, kind := range kinds {
				for i := range c.each {
					ref := capi(kind, fmt.Sprintf("o-%03d", i))
					api.put(ref, nil)
					want = append(want, wanted{tr.sourceTypes[ref.GroupKind()], ref})
				}
			}
			var mu sync.Mutex
			flying, most := 0, 0
			all := make(chan struct{})
			api.hook = func(*http.Request) {
				mu.Lock()
				if flying++; flying > most {
					most = flying
				}
				if flying == len(kinds) {
					close(all)
				}
				mu.Unlock()
				if c.most > 1 {
					<-all // all lists arrive before one is served
				} else {
					time.Sleep(20 * time.Millisecond) // time for another list, which must not arrive
				}
				mu.Lock()
				flying--
				mu.Unlock()
			}
			err := readEach(t.Context(), tr, tr.Source, want, func(context.Context, int, *unstructured.Unstructured) (int, error) { return 0, nil }, func([]int) error { return nil })
			if err != nil || most != c.most {
				t.Errorf("%d concurrent lists, want %d; error %v", most, c.most, err)
			}
		})
	}
}

// TestRemove checks the requests that remove needs to delete an object, also if a finalizer appears or a webhook denies
// the deletion.
func TestRemove(t *testing.T) {
	ref := capi("Machine", "m")
	held := obj{"metadata": obj{"finalizers": []any{"a"}}}
	for name, c := range map[string]struct {
		content obj
		guarded bool // a webhook denies the deletion without the annotation
		late    bool // a finalizer appears right before the deletion
		want    []string
	}{
		"without finalizers":      {nil, false, false, []string{"DELETE m"}},
		"with finalizers":         {held, false, false, []string{"PATCH m", "DELETE m"}},
		"a late finalizer":        {nil, false, true, []string{"DELETE m", "GET m", "PATCH m", "DELETE m"}},
		"denied without the mark": {nil, true, false, []string{"DELETE m", "GET m", "PATCH m", "DELETE m"}},
	} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			uid := api.put(ref, c.content)
			made := requests(api)
			count := api.hook
			guarded := false
			api.hook = func(r *http.Request) {
				count(r)
				have := api.get(ref)
				if c.late && r.Method == http.MethodDelete && have != nil && have.GetDeletionTimestamp() == nil {
					api.merge(ref, held)
				}
				guarded = c.guarded && have != nil && !isReleased(have)
			}
			api.deny = func(r *http.Request) string {
				if guarded && r.Method == http.MethodDelete {
					return `admission webhook "keep" denied the request`
				}
				return ""
			}
			typ := kube.Type{Group: object.CoreGroup, Kind: "Machine", Plural: "machines", Versions: []string{"v1beta2"}, Namespaced: true}
			source, before := api.cluster(t, "source"), api.get(ref)
			if err := remove(t.Context(), source, typ, ref, uid, headOf(before)); err != nil {
				t.Fatal(err)
			}
			if got := made(); !slices.Equal(got, c.want) || api.get(ref) != nil {
				t.Errorf("requests = %v, want %v; remaining object: %v", got, c.want, headOf(api.get(ref)))
			}
			other := api.put(ref, nil)
			if err := remove(t.Context(), source, typ, ref, uid, headOf(before)); err != nil {
				t.Fatal(err)
			}
			if left := api.get(ref); left == nil || left.GetUID() != other {
				t.Error("an object with another UID was deleted")
			}
		})
	}
}

// TestNobodyActsOnWhatIsReleased checks that the annotation for a pause is set on a released object. A controller that
// ignores the pause of the Cluster, such as that of HelmReleaseProxies, would otherwise add its finalizer again and
// then process the deletion.
func TestNobodyActsOnWhatIsReleased(t *testing.T) {
	ref := capi("Machine", "m")
	held := obj{"metadata": obj{"finalizers": []any{"a"}}}
	api := newFakeAPI(t)
	uid := api.put(ref, held)
	acted := false
	api.hook = func(*http.Request) {
		have := api.get(ref)
		switch {
		case have == nil || object.Observe(have).PausedByUser:
		case have.GetDeletionTimestamp() != nil:
			acted = true
		case len(have.GetFinalizers()) == 0:
			api.merge(ref, held)
		}
	}
	typ := kube.Type{Group: object.CoreGroup, Kind: "Machine", Plural: "machines", Versions: []string{"v1beta2"}, Namespaced: true}
	if err := remove(t.Context(), api.cluster(t, "source"), typ, ref, uid, headOf(api.get(ref))); err != nil || acted || api.get(ref) != nil {
		t.Errorf("the controller processed the deletion: %t; remaining object: %v; error %v", acted, api.get(ref), err)
	}
}

// TestWholeWithoutAList checks that objects are read individually if a list expires between two pages, or has a page
// that is too large.
func TestWholeWithoutAList(t *testing.T) {
	for name, second := range map[string]func() (*http.Response, error){
		"expired": func() (*http.Response, error) {
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
			return &http.Response{StatusCode: http.StatusGone, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		},
		"too large": func() (*http.Response, error) { return nil, guard.ErrTooLarge },
	} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			tr := &Transfer{}
			var err error
			tr.Source, err = kube.Connect("source", &rest.Config{Host: api.url, WrapTransport: func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.URL.Query().Get("continue") != "" {
						return second()
					}
					return next.RoundTrip(r)
				})
			}})
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.connect(t.Context(), mover.Spec{}, "", false); err != nil {
				t.Fatal(err)
			}
			var want []wanted
			for i := range 20 {
				ref := capi("Machine", fmt.Sprintf("m-%02d", i))
				api.put(ref, nil)
				want = append(want, wanted{tr.sourceTypes[ref.GroupKind()], ref})
			}
			api.page = 8
			seen := make([]bool, len(want))
			err = readEach(t.Context(), tr, tr.Source, want, func(_ context.Context, i int, u *unstructured.Unstructured) (int, error) {
				if u == nil || u.GetName() != want[i].ref.Name {
					return 0, fmt.Errorf("%s: got %v", want[i].ref, u)
				}
				return i, nil
			}, func(batch []int) error {
				for _, i := range batch {
					seen[i] = true
				}
				return nil
			})
			if err != nil || slices.Contains(seen, false) {
				t.Errorf("error %v; seen: %v", err, seen)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
