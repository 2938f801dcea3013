package kinds

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/test/harness"
	"scute.dev/workflow/task"
	"scute.dev/workflow/tasks/job"
)

// definition returns the definition of a kind, for a manifest.
func definition(group, kind, plural string) string {
	return fmt.Sprintf(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "%s.%s"}, "spec": {
		"group": %q, "scope": "Namespaced", "names": {"kind": %q, "plural": %q, "singular": %q, "listKind": "%sList"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`,
		plural, group, group, kind, plural, strings.ToLower(kind), kind)
}

// TestApplyLeavesWhatIsInUse checks that an undo does not delete a definition whose kind has other objects, or a
// namespace with clusters, because they would be deleted too.
func TestApplyLeavesWhatIsInUse(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "in-use")
	precious := func(apiVersion, kind, namespace string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		u.SetNamespace(namespace)
		u.SetName("precious")
		return u
	}
	s := applyStep(t, ns, `{"manifests": [`+definition("in-use.example.com", "Widget", "widgets")+`, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "in-use-fleet"}}]}`)
	harness.Must(t, s.run(ctx))
	if get(ctx, t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "clusters.cluster.x-k8s.io") == nil {
		c := applyStep(t, ns, `{"manifests": [`+definition("cluster.x-k8s.io", "Cluster", "clusters")+`]}`)
		c.name = "clusters"
		harness.Must(t, c.run(ctx))
	}
	widget := precious("in-use.example.com/v1", "Widget", ns)
	eventually(ctx, t, "Widgets are served", func() bool { return admin().Create(ctx, widget) == nil })
	crd := get(ctx, t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "clusters.cluster.x-k8s.io")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	newest, _ := versions[len(versions)-1].(map[string]any)
	cluster := precious(fmt.Sprintf("cluster.x-k8s.io/%v", newest["name"]), "Cluster", "in-use-fleet")
	cluster.Object["spec"] = map[string]any{"paused": true, "topology": map[string]any{"classRef": map[string]any{"name": "none"}, "version": "v1.30.0"}}
	harness.Must(t, admin().Create(ctx, cluster))

	for range 2 {
		err := s.takeBack(ctx)
		mentions(t, err, "in-use.example.com", "in use", "precious")
		if task.IsFinal(err) {
			t.Errorf("the error is final: %v", err)
		}
	}
	harness.Must(t, admin().Delete(ctx, widget))
	mentions(t, s.takeBack(ctx), "Namespace in-use-fleet is in use", "precious")
	if get(ctx, t, cluster.GetAPIVersion(), "Cluster", "in-use-fleet", "precious") == nil {
		t.Error("another client's cluster was deleted")
	}
	harness.Must(t, admin().Delete(ctx, cluster))
	harness.Must(t, s.takeBack(ctx))
	if get(ctx, t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.in-use.example.com") != nil {
		t.Error("the definition still exists")
	}
}

// TestApplyLeavesTheTemplatesOfAClass checks that an undo keeps the templates to which a ClusterClass still refers,
// even if another client has changed or recreated the class.
func TestApplyLeavesTheTemplatesOfAClass(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "class")
	const template = `{"apiVersion": "class.example.com/v1", "kind": "Shape", "metadata": {"name": "new"}}`
	kinds := applyStep(t, ns, `{"manifests": [`+definition("class.example.com", "Shape", "shapes")+`]}`)
	harness.Must(t, kinds.run(ctx))
	class := func(shapes ...string) string {
		ref := func(name string) string {
			return fmt.Sprintf(`{"templateRef": {"apiVersion": "class.example.com/v1", "kind": "Shape", "name": %q}}`, name)
		}
		var workers []string
		for _, name := range shapes {
			workers = append(workers, fmt.Sprintf(`{"class": %q, "bootstrap": %s, "infrastructure": %[2]s}`, name, ref(name)))
		}
		return fmt.Sprintf(`{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": {"namespace": %q, "name": "small"}, "spec": {
			"infrastructure": %s, "controlPlane": %[2]s, "workers": {"machineDeployments": [%s]}}}`, ns, ref("other"), strings.Join(workers, ", "))
	}
	object := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		harness.Must(t, u.UnmarshalJSON([]byte(text)))
		return u
	}
	s := applyStep(t, ns, `{"force": true, "manifests": [`+template+`, `+class("new")+`]}`)
	there := func() bool { return get(ctx, t, "class.example.com/v1", "Shape", ns, "new") != nil }
	change := func(shapes ...string) {
		t.Helper()
		u := get(ctx, t, "cluster.x-k8s.io/v1beta2", "ClusterClass", ns, "small")
		u.Object["spec"] = object(class(shapes...)).Object["spec"]
		harness.Must(t, admin().Update(ctx, u))
	}
	for _, created := range []bool{false, true} {
		s.undo, s.output = nil, nil
		if !created {
			harness.Must(t, admin().Create(ctx, object(class("old"))))
		}
		harness.Must(t, s.run(ctx))
		if created {
			harness.Must(t, admin().Delete(ctx, object(class())))
			harness.Must(t, admin().Create(ctx, object(class("new", "more"))))
		} else {
			change("new", "more")
		}
		isFinal(t, s.takeBack(ctx), "ClusterClass.cluster.x-k8s.io class/small")
		if !there() {
			t.Fatalf("created %t: the template of the class was deleted", created)
		}
		change("more")
		harness.Must(t, s.takeBack(ctx))
		if there() {
			t.Errorf("created %t: the unused template was not deleted", created)
		}
		harness.Must(t, admin().Delete(ctx, object(class())))
	}
}

// TestApplyIgnoresMarksInManifests checks that an object does not become the run's own if a user copies scute's
// annotation into a manifest.
func TestApplyIgnoresMarksInManifests(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "forged-mark")
	harness.Must(t, admin().Create(ctx, configMap(ns, "theirs", map[string]string{"a": "one"})))
	s := applyStep(t, ns, `{"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "annotations": {"scute.dev/run": "`+ns+`/run/1/apply"}}, "data": {"b": "two"}}]}`)
	harness.Must(t, s.run(ctx))
	harness.Must(t, s.run(ctx))
	harness.Must(t, s.takeBack(ctx))
	if u := getMap(ctx, t, ns, "theirs"); u == nil || data(u, "a") != "one" || data(u, "b") != "" {
		t.Errorf("the earlier object was not restored: %v", u)
	}
}

// TestAnotherCluster checks that a task's inputs cannot be changed to another cluster after it has acted. Otherwise its
// undo would act on the other cluster.
func TestAnotherCluster(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "another-cluster")
	harness.Must(t, admin().Create(ctx, configMap(ns, "gone", nil)))
	for kind, s := range map[string]*step{
		"Apply":  applyStep(t, ns, `{"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}]`),
		"Delete": remove(t, ns, `{"objects": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone"}]`),
		"Job":    {t: t, kind: &job.Kind{Clusters: clusters(true)}, namespace: ns, name: "job", with: `{"image": "i"`},
	} {
		with := s.with
		s.with, s.die = with+"}", true
		if s.run(ctx) == nil {
			t.Fatalf("%s: the attempt did not crash", kind)
		}
		s.with = with + `, "cluster": {"context": "another"}}`
		isFinal(t, s.run(ctx), "with.cluster: it has changed")
	}
}

// TestSelectorReadsAllPages checks a list that does not fit into one response.
func TestSelectorReadsAllPages(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	ns := namespace(ctx, t, "pages")
	const many = 501
	for i := range many {
		c := configMap(ns, fmt.Sprintf("c-%d", i), nil)
		c.Labels = map[string]string{"app": "many"}
		harness.Must(t, admin().Create(ctx, c))
	}
	harness.Must(t, waitStep(t, ns, fmt.Sprintf(`{"selector": {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "app=many"}, "for": "ready", "count": %d}`, many)).run(ctx))
}
