package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/object"
	"scute.dev/test/harness"
	"scute.dev/workflow/tasks/pause"
)

func thing(group, version, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	u.SetNamespace("gitops")
	u.SetName(name)
	return u
}

// switches describes the state of all objects: the stored value of the switch, and * if the object has scute's
// annotation.
func switches(ctx context.Context, t *testing.T) string {
	t.Helper()
	const fluxK, fluxH, eksa = "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io", "anywhere.eks.amazonaws.com"
	var said []string
	for _, u := range []*unstructured.Unstructured{
		thing(fluxK, "v1", "Kustomization", "apps"), thing(fluxK, "v1", "Kustomization", "held"), thing(fluxH, "v2", "HelmRelease", "cni"),
		thing(eksa, "v1alpha1", "Cluster", "prod"), thing(eksa, "v1alpha1", "VSphereDatacenterConfig", "prod"),
		thing(eksa, "v1alpha1", "VSphereMachineConfig", "prod-cp"), thing(eksa, "v1alpha1", "VSphereMachineConfig", "prod-md"),
	} {
		harness.Must(t, blue().Client().Get(ctx, client.ObjectKeyFromObject(u), u))
		value, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "suspend")
		if u.GroupVersionKind().Group == eksa {
			value, found, _ = unstructured.NestedFieldNoCopy(u.Object, "metadata", "annotations", eksa+"/paused")
		}
		word := "none"
		if found {
			word = fmt.Sprint(value)
		}
		if u.GetAnnotations()[object.PauseAnnotation] != "" {
			word += "*"
		}
		said = append(said, u.GetName()+"="+word)
	}
	return strings.Join(said, " ")
}

const (
	asFound  = "apps=none held=true cni=false prod=none prod=none prod-cp=none prod-md=true"
	asPaused = "apps=true* held=true cni=true* prod=true* prod=true* prod-cp=true* prod-md=true"
)

func TestPauseOfFluxAndEKSAnywhere(t *testing.T) {
	ctx := harness.Deadline(t, 3*time.Minute)
	admin := blue().Client()
	harness.Must(t, applyFile(ctx, admin, "testdata/flux-eksa.yaml"))
	s := &step{t: t, kind: &pause.Kind{Clusters: clusters()}, namespace: "gitops", name: "still", with: map[string]any{
		"kustomizations": []any{map[string]any{"name": "apps"}, map[string]any{"namespace": "gitops", "name": "held"}},
		"helmReleases":   []any{map[string]any{"name": "cni"}},
		"eksa":           []string{"prod"},
		"acknowledge":    "20s",
	}}
	want := func(t *testing.T, state string) {
		t.Helper()
		if got := switches(ctx, t); got != state {
			t.Errorf("state =\n%s, want\n%s", got, state)
		}
	}
	want(t, asFound)
	t.Run("a death between the record and the pause", func(t *testing.T) {
		s.recorded = func() error { return errDeath }
		if err := s.run(ctx); err == nil {
			t.Fatal("the attempt continued after its record failed")
		}
		s.recorded = nil
		want(t, asFound)
	})
	t.Run("work that is under way is waited for", func(t *testing.T) {
		busy := thing("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "apps")
		condition := func(status string) {
			body := fmt.Sprintf(`{"status":{"conditions":[{"type":"Reconciling","status":%q,"reason":"Progressing","message":"at work","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, status)
			harness.Must(t, admin.Status().Patch(ctx, busy, client.RawPatch("application/merge-patch+json", []byte(body))))
		}
		condition("True")
		s.with.(map[string]any)["acknowledge"] = "3s"
		if err := s.run(ctx); err == nil || !strings.Contains(err.Error(), "its controller is reconciling it") {
			t.Errorf("run = %v, want an error about an active controller", err)
		} else {
			t.Log(err)
		}
		s.with.(map[string]any)["acknowledge"] = "20s"
		want(t, asPaused)
		condition("False")
	})
	t.Run("the next attempt", func(t *testing.T) {
		harness.Must(t, s.run(ctx))
		want(t, asPaused)
		t.Logf("%s", s.output)
		var out pauseOutput
		harness.Must(t, json.Unmarshal(s.output, &out))
		if len(out.Settled) != 7 || len(out.Acknowledged) != 0 {
			t.Errorf("output = %+v, want 7 settled objects", out)
		}
	})
	t.Run("resume, and its undo", func(t *testing.T) {
		r := &step{t: t, kind: &pause.ResumeKind{Clusters: clusters()}, namespace: "gitops", name: "resume", with: map[string]any{"task": "still"}, inputs: map[string]json.RawMessage{"still": s.output}}
		harness.Must(t, r.run(ctx))
		want(t, asFound)
		harness.Must(t, r.undoes(ctx))
		want(t, asPaused)
	})
	t.Run("the undo of a resume leaves alone what somebody has suspended since", func(t *testing.T) {
		r := &step{t: t, kind: &pause.ResumeKind{Clusters: clusters()}, namespace: "gitops", name: "resume-2", with: map[string]any{"task": "still"}, inputs: map[string]json.RawMessage{"still": s.output}}
		harness.Must(t, r.run(ctx))
		apps := thing("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "apps")
		harness.Must(t, admin.Patch(ctx, apps, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`))))
		harness.Must(t, r.undoes(ctx))
		want(t, strings.Replace(asPaused, "apps=true*", "apps=true", 1))
		harness.Must(t, s.undoes(ctx))
		want(t, strings.Replace(asFound, "apps=none", "apps=true", 1))
		harness.Must(t, admin.Patch(ctx, apps, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":null}}`))))
		harness.Must(t, s.run(ctx))
		want(t, asPaused)
	})
	t.Run("undo, twice", func(t *testing.T) {
		harness.Must(t, s.undoes(ctx))
		want(t, asFound)
		harness.Must(t, s.undoes(ctx))
		want(t, asFound)
	})
	t.Run("what is selected no more is given back as well", func(t *testing.T) {
		p := &step{t: t, kind: &pause.Kind{Clusters: clusters()}, namespace: "gitops", name: "patched", with: map[string]any{"kustomizations": []any{map[string]any{"name": "apps"}}, "helmReleases": []any{map[string]any{"name": "cni"}}}}
		harness.Must(t, p.run(ctx))
		p.with = map[string]any{"helmReleases": []any{map[string]any{"name": "cni"}}} // an operator changed the inputs
		harness.Must(t, p.run(ctx))
		harness.Must(t, p.undoes(ctx))
		want(t, asFound)
	})
	t.Run("what somebody takes over is theirs", func(t *testing.T) {
		harness.Must(t, s.run(ctx))
		apps := thing("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "apps")
		harness.Must(t, admin.Patch(ctx, apps, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"scute.dev/pause":null}}}`))))
		harness.Must(t, s.undoes(ctx))
		want(t, strings.Replace(asFound, "apps=none", "apps=true", 1))
	})
}
