package transfer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"scute.dev/kube"
	"scute.dev/kube/object"
)

type obj = map[string]any

// fakeAPI is an API server in memory with objects, UIDs, resource versions, finalizers, merge patches and
// preconditions. It has no admission, validation, controllers or garbage collector, so it serves single steps only;
// whole moves are tested on the real stack.
type fakeAPI struct {
	url string

	mu      sync.Mutex
	objects map[string]obj // by path
	last    int
	// hook is called ahead of each request, without the lock.
	hook func(r *http.Request)
	// deny returns the message with which a request is denied, or "" if it is not.
	deny func(r *http.Request) string
	// deniedPlural is a plural, or another part of an access review, that access reviews deny.
	deniedPlural string
	// verbs are the granted verbs; nil is all.
	verbs []string
	// incomplete marks the rules of a namespace as incomplete.
	incomplete bool
	// identities adds the kinds identity, provider, resourceSet, configTemplate and host.
	identities bool
	// operator adds the kinds of the Cluster API Operator.
	operator bool
	// extraKinds are additional kinds.
	extraKinds []fakeKind
	// page is the number of objects on the first page of a list; there is no second page. 0 is all.
	page int
}

// fakeKind is a kind of the fake API server.
type fakeKind struct {
	group, version, kind, plural string
	namespaced                   bool
}

func fakeKinds() []fakeKind {
	const infra = "infrastructure.cluster.x-k8s.io"
	return []fakeKind{
		{"", "v1", "Namespace", "namespaces", false},
		{"", "v1", "Secret", "secrets", true},
		{"", "v1", "ConfigMap", "configmaps", true},
		{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false},
		{object.CoreGroup, "v1beta2", "Cluster", "clusters", true},
		{object.CoreGroup, "v1beta2", "ClusterClass", "clusterclasses", true},
		{object.CoreGroup, "v1beta2", "Machine", "machines", true},
		{object.CoreGroup, "v1beta2", "MachineSet", "machinesets", true},
		{infra, "v1beta2", "DevMachine", "devmachines", true},
	}
}

func identity() fakeKind {
	return fakeKind{"infrastructure.cluster.x-k8s.io", "v1beta2", "DevIdentity", "devidentities", false}
}

func provider() fakeKind {
	return fakeKind{"clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider", "providers", true}
}

func operated() (kinds []fakeKind) {
	for _, kind := range []string{"CoreProvider", "InfrastructureProvider"} {
		kinds = append(kinds, fakeKind{"operator.cluster.x-k8s.io", "v1alpha2", kind, strings.ToLower(kind) + "s", true})
	}
	return kinds
}

func host() fakeKind {
	return fakeKind{"metal3.io", "v1alpha1", "BareMetalHost", "baremetalhosts", true}
}

func resourceSet() fakeKind {
	return fakeKind{object.AddonsGroup, "v1beta2", "ClusterResourceSet", "clusterresourcesets", true}
}

func configTemplate() fakeKind {
	return fakeKind{"bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfigTemplate", "kubeadmconfigtemplates", true}
}

// kinds returns the kinds that are served.
func (f *fakeAPI) kinds() []fakeKind {
	kinds := fakeKinds()
	if f.identities {
		kinds = append(kinds, identity(), provider(), resourceSet(), configTemplate(), host())
	}
	if f.operator {
		kinds = append(kinds, operated()...)
	}
	return append(kinds, f.extraKinds...)
}

func (k fakeKind) apiVersion() string { return strings.TrimPrefix(k.group+"/"+k.version, "/") }

func (k fakeKind) base() string {
	if k.group == "" {
		return "/api/v1"
	}
	return "/apis/" + k.apiVersion()
}

// collection returns the path of a kind's objects in a namespace, or in all namespaces.
func (k fakeKind) collection(namespace string) string {
	if k.namespaced && namespace != "" {
		return k.base() + "/namespaces/" + namespace + "/" + k.plural
	}
	return k.base() + "/" + k.plural
}

func kindOf(ref object.Ref) fakeKind {
	kinds := slices.Concat(fakeKinds(), hostedKinds(), []fakeKind{identity(), provider(), resourceSet(), configTemplate(), host()}, operated())
	i := slices.IndexFunc(kinds, func(k fakeKind) bool { return k.group == ref.Group && k.kind == ref.Kind })
	return kinds[i]
}

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{objects: make(map[string]obj)}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	f.put(object.Ref{Kind: "Namespace", Name: metav1.NamespaceSystem}, nil)
	f.put(object.Ref{Kind: "Namespace", Name: "fleet"}, nil)
	for _, k := range fakeKinds() {
		if strings.HasSuffix(k.group, object.CoreGroup) {
			f.put(object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: k.plural + "." + k.group},
				obj{"metadata": obj{"labels": obj{"clusterctl.cluster.x-k8s.io": ""}}})
		}
	}
	return f
}

func (f *fakeAPI) cluster(t *testing.T, name string) *kube.Cluster {
	t.Helper()
	c, err := kube.Connect(name, &rest.Config{Host: f.url})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// put stores an object with a new UID.
func (f *fakeAPI) put(ref object.Ref, content obj) types.UID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.store(ref, content)
}

func (f *fakeAPI) store(ref object.Ref, content obj) types.UID {
	k := kindOf(ref)
	u := obj{"apiVersion": k.apiVersion(), "kind": k.kind}
	maps.Copy(u, content)
	meta, _ := u["metadata"].(obj)
	meta = maps.Clone(meta)
	if meta == nil {
		meta = obj{}
	}
	f.last++
	uid := fmt.Sprintf("%s-%d", f.url[len(f.url)-5:], f.last)
	meta["name"], meta["uid"], meta["resourceVersion"] = ref.Name, uid, fmt.Sprint(f.last)
	if ref.Namespace != "" {
		meta["namespace"] = ref.Namespace
	}
	u["metadata"] = meta
	f.objects[k.collection(ref.Namespace)+"/"+ref.Name] = u
	return types.UID(uid)
}

// get returns a copy of an object, or nil.
func (f *fakeAPI) get(ref object.Ref) *unstructured.Unstructured {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.objects[kindOf(ref).collection(ref.Namespace)+"/"+ref.Name]
	if u == nil {
		return nil
	}
	return (&unstructured.Unstructured{Object: u}).DeepCopy()
}

// drop removes an object at once, without regard to finalizers.
func (f *fakeAPI) drop(ref object.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, kindOf(ref).collection(ref.Namespace)+"/"+ref.Name)
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.hook != nil {
		f.hook(r)
	}
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	r.URL.Path = strings.TrimSuffix(r.URL.Path, "/status") // the status is not handled separately
	code, answer := f.answer(r, body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

func (f *fakeAPI) answer(r *http.Request, body []byte) (int, any) {
	if f.deny != nil {
		if why := f.deny(r); why != "" {
			return http.StatusForbidden, obj{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": metav1.StatusReasonForbidden, "message": why, "code": http.StatusForbidden}
		}
	}
	if found, ok := f.discovery(r.URL.Path); ok {
		return http.StatusOK, found
	}
	if strings.HasSuffix(r.URL.Path, "selfsubjectaccessreviews") {
		return http.StatusCreated, obj{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": obj{"allowed": f.deniedPlural == "" || !strings.Contains(string(body), f.deniedPlural)}}
	}
	if strings.HasSuffix(r.URL.Path, "selfsubjectrulesreviews") {
		return http.StatusCreated, obj{"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "status": f.rules()}
	}
	for _, k := range f.kinds() {
		namespace, ok := k.lists(r.URL.Path)
		switch {
		case ok && r.Method == http.MethodPost:
			return f.create(k, namespace, r, body)
		case ok:
			return http.StatusOK, f.list(k, namespace, r.URL.Query().Get("labelSelector"), strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata"))
		}
	}
	u := f.objects[r.URL.Path]
	switch {
	case u == nil:
		return refusal(http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodPatch:
		return f.patch(r, u, body)
	case r.Method == http.MethodDelete:
		return f.remove(r, u, body)
	default:
		return http.StatusOK, u
	}
}

func refusal(code int, reason metav1.StatusReason) (int, any) {
	return code, obj{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": string(reason), "code": code}
}

// rules grants the verbs on each kind except deniedPlural.
func (f *fakeAPI) rules() obj {
	verbs := f.verbs
	if verbs == nil {
		verbs = []string{"*"}
	}
	var granted []any
	for _, k := range f.kinds() {
		if k.plural != f.deniedPlural {
			granted = append(granted, obj{"verbs": verbs, "apiGroups": []string{k.group}, "resources": []string{k.plural}})
		}
	}
	return obj{"resourceRules": granted, "nonResourceRules": []any{}, "incomplete": f.incomplete}
}

// discovery responds without aggregation.
func (f *fakeAPI) discovery(path string) (obj, bool) {
	switch path {
	case "/api":
		return obj{"kind": "APIVersions", "versions": []string{"v1"}}, true
	case "/apis":
		groups := make(map[string]obj)
		for _, k := range f.kinds() {
			if k.group != "" {
				version := obj{"groupVersion": k.apiVersion(), "version": k.version}
				groups[k.group] = obj{"name": k.group, "versions": []obj{version}, "preferredVersion": version}
			}
		}
		return obj{"kind": "APIGroupList", "apiVersion": "v1", "groups": slices.Collect(maps.Values(groups))}, true
	}
	var resources []obj
	version := ""
	for _, k := range f.kinds() {
		if k.base() == path {
			version = k.apiVersion()
			resources = append(resources, obj{"name": k.plural, "kind": k.kind, "namespaced": k.namespaced, "verbs": []string{"get", "list"}})
		}
	}
	return obj{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}, resources != nil
}

// lists reports whether a path is a collection of the kind, and returns its namespace; "" is all.
func (k fakeKind) lists(path string) (namespace string, ok bool) {
	if path == k.collection("") {
		return "", true
	}
	if rest, found := strings.CutPrefix(path, k.base()+"/namespaces/"); found && k.namespaced {
		namespace, plural, _ := strings.Cut(rest, "/")
		return namespace, plural == k.plural
	}
	return "", false
}

// list supports only selectors for the existence of a label.
func (f *fakeAPI) list(k fakeKind, namespace, selector string, partial bool) obj {
	items := []obj{}
	for _, at := range slices.Sorted(maps.Keys(f.objects)) {
		u := f.objects[at]
		meta, _ := u["metadata"].(obj)
		if u["kind"] != k.kind || u["apiVersion"] != k.apiVersion() || namespace != "" && meta["namespace"] != namespace {
			continue
		}
		if labels, _ := meta["labels"].(obj); selector != "" && labels[selector] == nil {
			continue
		}
		if partial {
			u = obj{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
		}
		items = append(items, u)
	}
	if partial {
		return obj{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": obj{}, "items": items}
	}
	list := obj{}
	if f.page > 0 && len(items) > f.page {
		items, list = items[:f.page], obj{"continue": "more"}
	}
	return obj{"kind": k.kind + "List", "apiVersion": k.apiVersion(), "metadata": list, "items": items}
}

func (f *fakeAPI) create(k fakeKind, namespace string, r *http.Request, body []byte) (int, any) {
	var u obj
	_ = json.Unmarshal(body, &u)
	meta, _ := u["metadata"].(obj)
	name, _ := meta["name"].(string)
	if f.objects[k.collection(namespace)+"/"+name] != nil {
		return refusal(http.StatusConflict, metav1.StatusReasonAlreadyExists)
	}
	if r.URL.Query().Get("dryRun") != "" {
		return http.StatusCreated, u
	}
	f.store(object.Ref{Group: k.group, Kind: k.kind, Namespace: namespace, Name: name}, u)
	return http.StatusCreated, f.objects[k.collection(namespace)+"/"+name]
}

func (f *fakeAPI) patch(r *http.Request, u obj, body []byte) (int, any) {
	var asked struct {
		Metadata struct{ UID, ResourceVersion string }
	}
	_ = json.Unmarshal(body, &asked)
	meta, _ := u["metadata"].(obj)
	if cmp.Or(asked.Metadata.UID, fmt.Sprint(meta["uid"])) != meta["uid"] ||
		cmp.Or(asked.Metadata.ResourceVersion, fmt.Sprint(meta["resourceVersion"])) != meta["resourceVersion"] {
		return refusal(http.StatusConflict, metav1.StatusReasonConflict)
	}
	raw, _ := json.Marshal(u)
	merged, err := jsonpatch.MergePatch(raw, body)
	if err != nil {
		return refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
	var changed obj
	_ = json.Unmarshal(merged, &changed)
	if r.URL.Query().Get("dryRun") != "" {
		return http.StatusOK, changed
	}
	f.last++
	changed["metadata"].(obj)["resourceVersion"] = fmt.Sprint(f.last)
	f.objects[r.URL.Path] = changed
	f.settle(r.URL.Path)
	return http.StatusOK, changed
}

func (f *fakeAPI) remove(r *http.Request, u obj, body []byte) (int, any) {
	var options metav1.DeleteOptions
	_ = json.Unmarshal(body, &options)
	meta, _ := u["metadata"].(obj)
	if p := options.Preconditions; p != nil && p.UID != nil && string(*p.UID) != meta["uid"] {
		return refusal(http.StatusConflict, metav1.StatusReasonConflict)
	}
	if len(options.DryRun) == 0 && r.URL.Query().Get("dryRun") == "" {
		meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		f.settle(r.URL.Path)
		if left := f.objects[r.URL.Path]; left != nil {
			return http.StatusOK, left
		}
	}
	return http.StatusOK, obj{"kind": "Status", "apiVersion": "v1", "status": "Success"}
}

// settle removes an object that is being deleted and has no finalizers.
func (f *fakeAPI) settle(path string) {
	meta, _ := f.objects[path]["metadata"].(obj)
	if finalizers, _ := meta["finalizers"].([]any); meta["deletionTimestamp"] != nil && len(finalizers) == 0 {
		delete(f.objects, path)
	}
}

// merge changes an object as its controllers or users do.
func (f *fakeAPI) merge(ref object.Ref, change obj) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := kindOf(ref).collection(ref.Namespace) + "/" + ref.Name
	raw, _ := json.Marshal(f.objects[at])
	body, _ := json.Marshal(change)
	merged, _ := jsonpatch.MergePatch(raw, body)
	var changed obj
	_ = json.Unmarshal(merged, &changed)
	f.last++
	changed["metadata"].(obj)["resourceVersion"] = fmt.Sprint(f.last)
	f.objects[at] = changed
}
