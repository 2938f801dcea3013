package kinds

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/apply"
)

func applyStep(t *testing.T, namespace, with string) *step {
	t.Helper()
	return &step{t: t, kind: &apply.Kind{Clusters: clusters(true)}, namespace: namespace, name: "apply", with: with}
}

// actions returns the action for each object of an output, by name.
func actions(t *testing.T, s *step) map[string]string {
	t.Helper()
	var out struct {
		Objects []struct{ Name, Action, UID string }
	}
	harness.Must(t, json.Unmarshal(s.output, &out))
	actions := make(map[string]string)
	for _, o := range out.Objects {
		actions[o.Name] = o.Action
		if o.UID == "" {
			t.Errorf("%s has no UID in the output %s", o.Name, s.output)
		}
	}
	return actions
}

const threeMaps = `{"manifests": "
apiVersion: v1
kind: ConfigMap
metadata: {name: fresh}
data: {a: one}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: same}
data: {a: one}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, labels: {l: new}}
data: {a: one, c: three}
", "force": true}`

func asJSON(with string) string { return strings.ReplaceAll(with, "\n", "\\n") }

// TestApply checks that an undo keeps objects that were already as requested, restores changed objects, and deletes
// created ones.
func TestApply(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "apply")
	harness.Must(t, admin().Create(ctx, configMap(ns, "same", map[string]string{"a": "one", "b": "kept"})))
	harness.Must(t, admin().Create(ctx, configMap(ns, "other", map[string]string{"a": "was", "b": "kept"})))
	same := getMap(ctx, t, ns, "same")

	s := applyStep(t, ns, asJSON(threeMaps))
	harness.Must(t, s.run(ctx))
	if s.adopted {
		t.Error("recorded as adopted, although an object was changed")
	}
	got := actions(t, s)
	for name, want := range map[string]string{"fresh": "created", "same": "none", "other": "changed"} {
		if got[name] != want {
			t.Errorf("%s: action %q, want %q", name, got[name], want)
		}
	}
	if u := getMap(ctx, t, ns, "fresh"); data(u, "a") != "one" || u.GetAnnotations()[access.StepKeyAnnotation] != ns+"/run/1/apply" {
		t.Errorf("fresh = %v, want it created with the run's annotation", u)
	}
	if u := getMap(ctx, t, ns, "same"); u.GetResourceVersion() != same.GetResourceVersion() {
		t.Errorf("same was written: %v", u)
	}
	if u := getMap(ctx, t, ns, "other"); data(u, "a") != "one" || data(u, "b") != "kept" || data(u, "c") != "three" || u.GetLabels()["l"] != "new" {
		t.Errorf("other = %v, want it changed", u)
	}

	t.Run("verify", func(t *testing.T) {
		verifier := s.kind.(task.Verifier)
		if reason, err := verifier.Verify(ctx, s.call()); err != nil || reason != "" {
			t.Fatalf("Verify = %q, %v, want no reason", reason, err)
		}
		harness.Must(t, admin().Delete(ctx, configMap(ns, "same", nil)))
		reason, err := verifier.Verify(ctx, s.call())
		harness.Must(t, err)
		if reason != "ConfigMap apply/same no longer exists" {
			t.Errorf("Verify = %q, want that same is gone", reason)
		}
	})

	// Another client changes the object further. This change is kept.
	harness.Must(t, admin().Patch(ctx, configMap(ns, "other", nil), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"m":"theirs"}},"data":{"c":"theirs"}}`))))
	for range 2 { // the undo is idempotent
		harness.Must(t, s.takeBack(ctx))
	}
	if u := getMap(ctx, t, ns, "fresh"); u != nil {
		t.Errorf("fresh still exists after the undo: %v", u)
	}
	u := getMap(ctx, t, ns, "other")
	if data(u, "a") != "was" || data(u, "b") != "kept" || data(u, "c") != "theirs" || len(u.GetLabels()) != 1 || u.GetLabels()["m"] != "theirs" {
		t.Errorf("other after the undo = %v, want it restored with the foreign changes", u)
	}
	for _, e := range u.GetManagedFields() {
		if e.Manager == "scute" && e.Operation == metav1.ManagedFieldsOperationApply {
			t.Errorf("scute still owns fields: %v", e)
		}
	}
}

// TestApplyAdopts checks that nothing is rolled back if all objects were already as requested.
func TestApplyAdopts(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "adopt")
	harness.Must(t, admin().Create(ctx, configMap(ns, "c", map[string]string{"a": "one"})))
	s := applyStep(t, ns, `{"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "one"}}]}`)
	harness.Must(t, s.run(ctx))
	if !s.adopted {
		t.Error("not recorded as adopted")
	}
	harness.Must(t, s.takeBack(ctx))
	if getMap(ctx, t, ns, "c") == nil {
		t.Error("the undo deleted an object that existed before")
	}
	s = applyStep(t, ns, `{"adopt": false, "manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "one"}}]}`)
	isFinal(t, s.run(ctx), "ConfigMap adopt/c already exists", "with.adopt: true")
}

// TestApplyTogether checks two runs that find an object missing at the same time and both try to create it. The later
// one leaves it to the other, even when it is rolled back.
func TestApplyTogether(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "together")
	const shared = `{"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}}]}`
	first, second := applyStep(t, ns, shared), applyStep(t, ns, shared)
	first.name = "first"
	second.recorded = func() {
		second.recorded = nil
		harness.Must(t, first.run(ctx))
	}
	harness.Must(t, second.run(ctx))
	if !strings.Contains(string(second.output), `"action":"none"`) {
		t.Errorf("output of the later run = %s, want action none", second.output)
	}
	harness.Must(t, second.takeBack(ctx))
	if getMap(ctx, t, ns, "shared") == nil {
		t.Fatal("the rollback of one run deleted the other run's object")
	}
	harness.Must(t, first.takeBack(ctx))
	if getMap(ctx, t, ns, "shared") != nil {
		t.Error("the rollback of the run that created the object kept it")
	}
}

// TestApplyDies checks that after a crash at any moment the next attempt distinguishes its own objects from those that
// existed before.
func TestApplyDies(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "dies")
	harness.Must(t, admin().Create(ctx, configMap(ns, "other", map[string]string{"a": "was"})))
	s := applyStep(t, ns, asJSON(threeMaps))
	s.die = true // between the record and the first write
	if err := s.run(ctx); err == nil {
		t.Fatal("the attempt did not crash")
	}
	if getMap(ctx, t, ns, "fresh") != nil {
		t.Fatal("the object was written before the record")
	}
	// Another client creates one of the objects now and owns it from then on.
	harness.Must(t, admin().Create(ctx, configMap(ns, "same", map[string]string{"a": "one"})))
	harness.Must(t, s.run(ctx))
	harness.Must(t, s.run(ctx)) // a crash after all writes and before the result was stored
	if got := actions(t, s); got["fresh"] != "created" || got["other"] != "changed" || got["same"] != "none" {
		t.Errorf("actions = %v", got)
	}
	harness.Must(t, s.takeBack(ctx))
	if getMap(ctx, t, ns, "fresh") != nil {
		t.Error("fresh still exists after the undo")
	}
	if u := getMap(ctx, t, ns, "other"); data(u, "a") != "was" || data(u, "c") != "" {
		t.Errorf("other after the undo = %v, want it restored", u)
	}
	if getMap(ctx, t, ns, "same") == nil {
		t.Error("the undo deleted another client's object")
	}
}

// TestApplyRecreates checks that the next attempt does not accept an object that is being deleted.
func TestApplyRecreates(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "recreate")
	s := applyStep(t, ns, `{"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "finalizers": ["example.com/hold"]}}]}`)
	harness.Must(t, s.run(ctx))
	first := getMap(ctx, t, ns, "c").GetUID()

	ended, late := make(chan error, 1), expires(ctx)
	go func() { ended <- s.takeBack(late) }()
	s.saw(ctx, "waits for finalizers: example.com/hold")
	s.rests("an undo that waits until an object is gone")
	close(late.over)
	mentions(t, <-ended, "ConfigMap recreate/c is being deleted and waits for finalizers: example.com/hold")

	s.says, s.waits, s.workedAgain = nil, false, false
	go func() { ended <- s.run(ctx) }()
	s.saw(ctx, "waits for finalizers: example.com/hold")
	s.rests("an attempt that waits until an object is gone")
	harness.Must(t, admin().Patch(ctx, configMap(ns, "c", nil), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	harness.Must(t, <-ended)
	if !s.workedAgain {
		t.Error("the object was created without a worker")
	}
	u := getMap(ctx, t, ns, "c")
	if u == nil || u.GetUID() == first || u.GetDeletionTimestamp() != nil {
		t.Fatalf("object = %v, want a new one", u)
	}
}

// TestApplySecret checks that no part of a Secret's content is recorded or printed.
func TestApplySecret(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "secret")
	const canary = "c4n4ry"
	manifest := "apiVersion: v1\nkind: Secret\nmetadata: {name: %}\nstringData: {password: " + canary + "}\n"
	put := func(name, text string) {
		harness.Must(t, admin().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string][]byte{"m": []byte(text)}}))
	}
	put("manifests", strings.ReplaceAll(manifest, "%", "fresh")+"---\n"+strings.ReplaceAll(manifest, "%", "there"))
	put("bad", "apiVersion: v1\nkind: Secret\nmetadata: {name: tls}\ntype: kubernetes.io/tls\nstringData: {tls.key: "+canary+"}\n")
	harness.Must(t, admin().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "there"}, Data: map[string][]byte{"password": []byte("old-" + canary)}}))

	s := applyStep(t, ns, `{"from": {"secretRef": {"name": "manifests"}}, "force": true}`)
	harness.Must(t, s.run(ctx))
	err := s.takeBack(ctx)
	isFinal(t, err, "Secret secret/there was changed and cannot be restored")
	if get(ctx, t, "v1", "Secret", ns, "fresh") != nil {
		t.Error("fresh was not deleted by the undo")
	}
	bad := applyStep(t, ns, `{"from": {"secretRef": {"name": "bad", "key": "m"}}}`)
	refused := bad.run(ctx)
	isFinal(t, refused, "the API server rejects Secret secret/tls as invalid")
	for what, text := range map[string]string{
		"undo": string(s.undo), "output": string(s.output), "error": err.Error(), "refusal": refused.Error(), "bad undo": string(bad.undo),
	} {
		if strings.Contains(text, canary) || strings.Contains(text, "YzRuNHJ5") {
			t.Errorf("the %s contains the secret: %s", what, text)
		}
	}

	inline := `{"manifests": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "stringData": {"p": "` + canary + `"}}]}`
	problems := s.kind.Validate(json.RawMessage(inline))
	if len(problems) != 1 || !strings.Contains(problems[0].Remedy, "from.secretRef") {
		t.Errorf("problems = %v, want one with the remedy from.secretRef", problems)
	}
}

// TestApplyRefused checks that an error that a retry cannot fix is final and names the remedy.
func TestApplyRefused(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "refused")
	one := `{"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "one"}}]}`

	t.Run("conflict", func(t *testing.T) {
		theirs := configMap(ns, "c", map[string]string{"a": "theirs"})
		harness.Must(t, admin().Create(ctx, theirs, client.FieldOwner("flux")))
		s := applyStep(t, ns, one)
		isFinal(t, s.run(ctx), "flux", ".data.a", "with.force: true")
		if s.undo != nil {
			t.Errorf("recorded %s before the conflict", s.undo)
		}
		s.with = strings.Replace(one, "{", `{"force": true, `, 1)
		harness.Must(t, s.run(ctx))
	})
	t.Run("forbidden", func(t *testing.T) {
		s := applyStep(t, ns, one)
		s.kind, s.account = &apply.Kind{Clusters: clusters(false)}, "nobody"
		isFinal(t, s.run(ctx), "system:serviceaccount:refused:nobody", "grant this permission")
	})
	t.Run("over quota", func(t *testing.T) {
		full := namespace(ctx, t, "over-quota")
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: full, Name: "q"}}
		quota.Spec.Hard = corev1.ResourceList{"count/configmaps": resource.MustParse("1")}
		harness.Must(t, admin().Create(ctx, quota))
		quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, quota.Spec.Hard
		harness.Must(t, admin().Status().Update(ctx, quota))
		s := applyStep(t, full, one)
		err := s.run(ctx)
		mentions(t, err, "exceeded quota: q")
		if task.IsFinal(err) || strings.Contains(err.Error(), "grant this permission") {
			t.Errorf("%v, want an error that is not final and names no permission", err)
		}
		harness.Must(t, admin().Delete(ctx, quota))
		eventually(ctx, t, "the API server has seen that the quota is gone", func() bool { return s.run(ctx) == nil })
	})
	t.Run("not admitted", func(t *testing.T) {
		strict := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "not-admitted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
		harness.Must(t, admin().Create(ctx, strict))
		s := applyStep(t, strict.Name, `{"manifests": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}]}`)
		err := s.run(ctx)
		isFinal(t, err, "violates PodSecurity", "a policy or a webhook of the cluster denies it")
		if strings.Contains(err.Error(), "grant this permission") {
			t.Errorf("%v, want no missing permission", err)
		}
	})
	t.Run("not valid", func(t *testing.T) {
		s := applyStep(t, ns, `{"manifests": [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 99999}]}}]}`)
		isFinal(t, s.run(ctx), "spec.ports")
	})
	t.Run("no such namespace", func(t *testing.T) {
		s := applyStep(t, ns, strings.Replace(one, "{", `{"namespace": "nowhere", `, 1))
		err := s.run(ctx)
		mentions(t, err, `namespaces "nowhere" not found`)
		if task.IsFinal(err) {
			t.Error("the error is final, although the namespace may be created later")
		}
	})
	t.Run("no such kind", func(t *testing.T) {
		s := applyStep(t, ns, `{"manifests": [{"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "s"}}]}`)
		err := s.run(ctx)
		mentions(t, err, "no kind Nothing in example.com/v1")
		if task.IsFinal(err) {
			t.Error("the error is final, although the definition may be created later")
		}
	})
}

const gadget = `
apiVersion: example.com/v1
kind: Gadget
metadata: {name: g, namespace: gadgets}
spec: {size: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Namespace
metadata: {name: gadgets}
`

// TestApplyDefinitions checks that namespaces and definitions are applied first, and that the undo deletes them last.
func TestApplyDefinitions(t *testing.T) {
	ctx := harness.Deadline(t, 2*time.Minute)
	ns := namespace(ctx, t, "definitions")
	harness.Must(t, admin().Create(ctx, configMap(ns, "manifests", map[string]string{"m": gadget})))
	s := applyStep(t, ns, `{"from": {"configMapRef": {"name": "manifests"}}}`)
	harness.Must(t, s.run(ctx))
	if get(ctx, t, "example.com/v1", "Gadget", "gadgets", "g") == nil {
		t.Fatal("the Gadget was not created")
	}
	harness.Must(t, s.takeBack(ctx))
	if get(ctx, t, "v1", "Namespace", "", "gadgets") != nil || get(ctx, t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "gadgets.example.com") != nil {
		t.Error("the namespace or the definition exists after the undo")
	}
}

// TestApplyWaits checks that Apply waits for readiness, reports what is not ready, and fails if an object has failed.
func TestApplyWaits(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "waits")
	s := applyStep(t, ns, `{"manifests": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
		"replicas": 1, "selector": {"matchLabels": {"app": "d"}},
		"template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}]}`)
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	s.saw(ctx, "Deployment.apps waits/d is not ready")
	status := func(text string) {
		t.Helper()
		u := get(ctx, t, "apps/v1", "Deployment", ns, "d")
		harness.Must(t, admin().Status().Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte(text))))
	}
	status(`{"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "conditions": [
		{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}, {"type": "Available", "status": "True"}]}}`)
	harness.Must(t, <-ended)

	status(`{"status": {"readyReplicas": 0, "availableReplicas": 0, "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}}`)
	err := s.run(ctx)
	mentions(t, err, "Deployment.apps waits/d has failed")
	if task.IsFinal(err) {
		t.Error("the error is final, although a retry may succeed")
	}
}

// TestApplyTooLarge checks that an earlier state that is too large for the log is not recorded, and that the undo
// reports this.
func TestApplyTooLarge(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "large")
	harness.Must(t, admin().Create(ctx, configMap(ns, "c", map[string]string{"a": strings.Repeat("x", 300<<10)})))
	s := applyStep(t, ns, `{"force": true, "manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "one"}}]}`)
	harness.Must(t, s.run(ctx))
	if len(s.undo) > 1000 {
		t.Errorf("the record has %d bytes", len(s.undo))
	}
	isFinal(t, s.takeBack(ctx), "ConfigMap large/c was changed and cannot be restored", "too large")
}

// TestApplyExpanded checks that every object becomes its own task, and that no task's inputs contain the content of a
// Secret.
func TestApplyExpanded(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "expanded")
	const canary = "c4n4ry"
	harness.Must(t, admin().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "manifests"}, StringData: map[string]string{"m": `
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {password: ` + canary + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, annotations: {scute.dev/needs: secret/s}}
`}}))
	whole := applyStep(t, ns, `{"from": {"secretRef": {"name": "manifests"}}, "expand": true}`)
	with := &apply.With{}
	harness.Must(t, json.Unmarshal([]byte(whole.with), with))
	objects, err := whole.kind.(*apply.Kind).Objects(ctx, whole.call(), with)
	harness.Must(t, err)
	base := v1alpha1.TaskSpec{StepSpec: v1alpha1.StepSpec{Name: "apply", Kind: "Apply", With: &apiextensionsv1.JSON{Raw: []byte(whole.with)}}}
	parts, problems := apply.Expand(base, objects)
	if len(problems) > 0 || len(parts) != 2 || parts[1].Needs[0].Task != "apply/secret-s" {
		t.Fatalf("Expand = %v, %v", parts, problems)
	}
	for _, p := range parts {
		if strings.Contains(string(p.With.Raw), canary) {
			t.Errorf("inputs of %s contain the secret: %s", p.Name, p.With.Raw)
		}
		s := applyStep(t, ns, string(p.With.Raw))
		s.name = p.Name
		harness.Must(t, s.run(ctx))
		if len(actions(t, s)) != 1 {
			t.Errorf("%s: output %s, want one object", p.Name, s.output)
		}
	}
	if get(ctx, t, "v1", "Secret", ns, "s") == nil || getMap(ctx, t, ns, "c") == nil {
		t.Error("not all objects were applied")
	}
}

// TestApplyOverwritesSecretly checks that no record contains content from a Secret, whatever the kind of the applied
// object.
func TestApplyOverwritesSecretly(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "secretly")
	const canary = "c4n4ry"
	harness.Must(t, admin().Create(ctx, configMap(ns, "c", map[string]string{"a": "was"})))
	harness.Must(t, admin().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "manifests"}, StringData: map[string]string{
		"m": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: " + canary + "}\n",
	}}))
	s := applyStep(t, ns, `{"from": {"secretRef": {"name": "manifests"}}, "force": true}`)
	harness.Must(t, s.run(ctx))
	if data(getMap(ctx, t, ns, "c"), "a") != canary || strings.Contains(string(s.undo)+string(s.output), canary) {
		t.Errorf("record %s, output %s; want neither to contain the secret", s.undo, s.output)
	}
	harness.Must(t, s.takeBack(ctx))
	if u := getMap(ctx, t, ns, "c"); data(u, "a") != "was" {
		t.Errorf("ConfigMap after the undo = %v, want it restored", u)
	}
}
