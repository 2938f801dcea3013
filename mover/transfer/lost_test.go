package transfer

import (
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
)

// hostedKinds returns the kinds of a hosted control plane.
func hostedKinds() []fakeKind {
	return []fakeKind{
		{"controlplane.cluster.x-k8s.io", "v1beta1", "K0smotronControlPlane", "k0smotroncontrolplanes", true},
		{"controlplane.cluster.x-k8s.io", "v1beta1", "OtherControlPlane", "othercontrolplanes", true},
		{"apps", "v1", "StatefulSet", "statefulsets", true},
		{"", "v1", "Pod", "pods", true},
		{"", "v1", "Event", "events", true},
		{"runtime.cluster.x-k8s.io", "v1beta2", "ExtensionConfig", "extensionconfigs", false},
	}
}

func ofKind(kind, name string) object.Ref {
	i := slices.IndexFunc(hostedKinds(), func(k fakeKind) bool { return k.kind == kind })
	ref := object.Ref{Group: hostedKinds()[i].group, Kind: kind, Name: name}
	if hostedKinds()[i].namespaced {
		ref.Namespace = "fleet"
	}
	return ref
}

func owned(f *fakeAPI, by object.Ref, more obj) obj {
	content := ownedBy(by, f.get(by).GetUID())
	maps.Copy(content, more)
	return content
}

// hosted returns a Cluster with a control plane that owns a StatefulSet, which owns a Pod.
func hosted(t *testing.T, kind string, spec obj) (f *fakes, controlPlane, set object.Ref) {
	t.Helper()
	f = moved(t, mover.Claimed{Holder: "one"})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}, "spec": obj{"paused": nil}})
	f.dst.drop(f.cluster)
	f.dst.drop(f.machine)
	for _, side := range []*fakeAPI{f.src, f.dst} {
		side.extraKinds = hostedKinds()
		for _, k := range hostedKinds() {
			if strings.HasSuffix(k.group, object.CoreGroup) {
				side.put(object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: k.plural + "." + k.group}, obj{"metadata": obj{"labels": obj{"clusterctl.cluster.x-k8s.io": ""}}})
			}
		}
	}
	controlPlane, set = ofKind(kind, "a"), ofKind("StatefulSet", "a-etcd")
	f.src.merge(f.cluster, obj{"spec": obj{"controlPlaneRef": obj{"apiGroup": controlPlane.Group, "kind": kind, "name": "a"}}, "status": obj{"controlPlaneReady": true}})
	f.src.put(controlPlane, owned(f.src, f.cluster, spec))
	f.src.put(set, owned(f.src, controlPlane, nil))
	f.src.put(ofKind("Pod", "a-etcd-0"), owned(f.src, set, nil))
	return f, controlPlane, set
}

func (f *fakes) preflight() []mover.Finding {
	f.t.Helper()
	outcome, err := f.transfer.preflight(f.t.Context(), f.state)
	if err != nil {
		f.t.Fatal(err)
	}
	done, ok := outcome.(mover.PreflightDone)
	if !ok {
		f.t.Fatalf("%+v", outcome)
	}
	return done.Findings
}

// severityOf returns the severity of the finding about an object whose message contains says.
func severityOf(findings []mover.Finding, field, says string) mover.Severity {
	for _, one := range findings {
		if strings.HasSuffix(one.Field, field) && strings.Contains(one.Message, says) {
			return one.Severity
		}
	}
	return ""
}

// TestAHostedControlPlaneIsRefused checks that the preflight reports each object of a hosted control plane that would
// be lost as an error, or as a warning if its kind is accepted as lost.
func TestAHostedControlPlaneIsRefused(t *testing.T) {
	for _, kind := range []string{"K0smotronControlPlane", "OtherControlPlane"} {
		t.Run(kind, func(t *testing.T) {
			f, controlPlane, set := hosted(t, kind, obj{"spec": obj{"replicas": int64(1)}})
			found := f.preflight()
			if severityOf(found, controlPlane.String(), "hosted") != mover.Error || severityOf(found, set.String(), "its 1 dependent at the source, because its owner "+controlPlane.String()) != mover.Error {
				t.Errorf("findings without accepted losses = %+v", found)
			}
			f.state.Spec.AcceptLoss = []string{set.GroupKind()}
			found = f.preflight()
			if severityOf(found, controlPlane.String(), "hosted") != mover.Error || severityOf(found, set.String(), "it will be lost") != mover.Warning {
				t.Errorf("findings with StatefulSets accepted = %+v", found)
			}
			f.state.Spec.AcceptLoss = []string{controlPlane.GroupKind(), set.GroupKind()}
			found = f.preflight()
			if severityOf(found, controlPlane.String(), "it will be lost") != mover.Warning || slices.ContainsFunc(found, func(one mover.Finding) bool { return one.Severity == mover.Error }) {
				t.Errorf("findings with all kinds accepted = %+v", found)
			}
		})
	}
}

// TestWhatMayNotBeListedIsNamed checks that a warning names a kind that may not be listed, and that nothing is assumed
// about its objects.
func TestWhatMayNotBeListedIsNamed(t *testing.T) {
	for name, deny := range map[string]func(f *fakes){
		"the rules say so": func(f *fakes) { f.src.deniedPlural = "statefulsets" },
		"the answer says so": func(f *fakes) {
			f.src.incomplete = true
			f.src.deny = func(r *http.Request) string {
				if strings.HasSuffix(r.URL.Path, "/statefulsets") {
					return "no"
				}
				return ""
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, _, set := hosted(t, "K0smotronControlPlane", nil)
			deny(f)
			if found := f.preflight(); severityOf(found, "source", "StatefulSet.apps") != mover.Warning || severityOf(found, set.String(), "") != "" {
				t.Errorf("findings = %+v", found)
			}
		})
	}
}

// TestWhatComesAfterThePreflightIsNotLost checks that an object that appears after the preflight is found before
// anything is deleted, unless its loss is accepted.
func TestWhatComesAfterThePreflightIsNotLost(t *testing.T) {
	for _, accepted := range []bool{false, true} {
		f := moved(t, mover.AllCreated{})
		f.src.extraKinds = hostedKinds()
		if accepted {
			f.state.Spec.AcceptLoss = []string{"StatefulSet.apps"}
		}
		set := ofKind("StatefulSet", "late")
		f.src.put(set, owned(f.src, f.cluster, nil))
		f.step()
		if refused := strings.Contains(f.state.RollbackCause, set.String()); refused == accepted {
			t.Errorf("accepted %t: phase %s, rollback cause %q", accepted, f.state.Phase, f.state.RollbackCause)
		}
	}
}

// TestACopyThatWouldNotStay checks that an object that should stay counts as lost if all its owners move.
func TestACopyThatWouldNotStay(t *testing.T) {
	f := moved(t, mover.Claimed{})
	secret := object.Ref{Kind: "Secret", Namespace: "fleet", Name: "shared"}
	cluster := object.Observed{Ref: f.cluster, UID: "c"}
	copied := object.Observed{Ref: secret, UID: "s", Owners: []object.Owner{{Ref: f.cluster, UID: "c"}}}
	if err := f.transfer.connect(t.Context(), mover.Spec{}, "", false); err != nil {
		t.Fatal(err)
	}
	lost, _, err := f.transfer.lostObjects(t.Context(), []mover.Member{{Observed: cluster}, {Observed: copied, KeepReason: "another Cluster names it"}}, &snapshot{objects: []object.Observed{cluster, copied}})
	if err != nil || len(lost) != 1 || lost[0].Ref != secret {
		t.Errorf("lost = %+v, error %v, want the Secret", lost, err)
	}
}

// TestAHostedControlPlaneIsNotRestoredEmpty checks that a backup warns that it lacks the data of a hosted control
// plane, and that a restore refuses to create an empty one.
func TestAHostedControlPlaneIsNotRestoredEmpty(t *testing.T) {
	f, controlPlane, _ := hosted(t, "K0smotronControlPlane", nil)
	dir := filepath.Join(t.TempDir(), "backup")
	w, err := archive.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &Backup{Source: f.src.cluster(t, "source"), Selection: mover.Selection{Namespace: "fleet", Clusters: []string{"a"}}, Writer: w}
	index, found, err := b.Run(t.Context())
	if err != nil || severityOf(found, controlPlane.String(), "not in the backup") != mover.Warning {
		t.Fatalf("findings = %+v, error %v", found, err)
	}
	index.ID, index.TakenAt = "0123", time.Now()
	if err := w.Finish(index); err != nil {
		t.Fatal(err)
	}
	backup, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &Restore{Target: f.dst.cluster(t, "target"), SourceGone: true, Archive: backup}
	_, err = r.Prepare(t.Context())
	var refused *RefusedError
	if !errors.As(err, &refused) || severityOf(refused.Findings, controlPlane.String(), "empty control plane") != mover.Error {
		t.Errorf("Prepare = %v, want a refusal", err)
	}
}

// TestExtensionsOfTheTarget checks that the target must have the runtime extensions that a ClusterClass references,
// with their handlers.
func TestExtensionsOfTheTarget(t *testing.T) {
	class := capi("ClusterClass", "base")
	config := ofKind("ExtensionConfig", "labels")
	for name, c := range map[string]struct {
		there obj
		field string
		want  mover.Severity
	}{
		"is not there":    {nil, "ExtensionConfig.runtime.cluster.x-k8s.io labels", mover.Error},
		"has no handler":  {obj{}, "ExtensionConfig.runtime.cluster.x-k8s.io labels", mover.Error},
		"has the handler": {obj{"status": obj{"handlers": []any{obj{"name": "generate.labels"}}}}, "ExtensionConfig.runtime.cluster.x-k8s.io labels", ""},
		"is not named":    {obj{"status": obj{"handlers": []any{obj{"name": "generate.labels"}}}}, "ExtensionConfig.runtime.cluster.x-k8s.io hooks", mover.Warning},
	} {
		t.Run(name, func(t *testing.T) {
			f, _, _ := hosted(t, "K0smotronControlPlane", nil)
			f.src.put(class, obj{"spec": obj{"patches": []any{obj{"name": "p", "external": obj{"generatePatchesExtension": "generate.labels"}}}}})
			f.src.merge(f.cluster, obj{"spec": obj{"topology": obj{"classRef": obj{"name": "base"}}}})
			f.src.put(config, nil)
			f.src.put(ofKind("ExtensionConfig", "hooks"), nil)
			if c.there != nil {
				f.dst.put(config, c.there)
			}
			if found := f.preflight(); severityOf(found, c.field, "") != c.want {
				t.Errorf("findings = %+v", found)
			}
		})
	}
}

// TestWhatIsHalfWayIsRefused checks that the preflight refuses unfinished upgrades and in-place updates.
func TestWhatIsHalfWayIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(f *fakes) object.Ref{
		"upgrade of the control plane": func(f *fakes) object.Ref {
			f.src.merge(f.cluster, obj{"status": obj{"controlPlane": obj{"upgradePlan": []any{obj{"version": "v1.35.0"}}}}})
			return f.cluster
		},
		"upgrade of the workers": func(f *fakes) object.Ref {
			f.src.merge(f.cluster, obj{"status": obj{"workers": obj{"upgradePlan": []any{obj{"version": "v1.35.0"}}}}})
			return f.cluster
		},
		"the last step of an upgrade": func(f *fakes) object.Ref {
			f.src.merge(f.cluster, obj{"metadata": obj{"annotations": obj{"topology.internal.cluster.x-k8s.io/upgrade-step": "v1.35.0"}}})
			return f.cluster
		},
		"update in place": func(f *fakes) object.Ref {
			f.src.merge(f.machine, obj{"metadata": obj{"annotations": obj{"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": ""}}})
			return f.machine
		},
		"update in place that waits for its hook": func(f *fakes) object.Ref {
			f.src.merge(f.machine, obj{"metadata": obj{"annotations": obj{"runtime.cluster.x-k8s.io/pending-hooks": "Other,UpdateMachine"}}})
			return f.machine
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Claimed{})
			f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}, "spec": obj{"paused": nil}})
			if ref, found := spoil(f), f.preflight(); severityOf(found, ref.String(), "in progress") != mover.Error {
				t.Errorf("findings = %+v", found)
			}
		})
	}
}

// TestAMachineOfAPoolMovesWithItsStatus checks that a machine of a pool is refused unless its status is moved, which is
// the only record of the RemoteMachine that uses it. Without it the target would install another machine.
func TestAMachineOfAPoolMovesWithItsStatus(t *testing.T) {
	pooled := object.Ref{Group: "infrastructure.cluster.x-k8s.io", Kind: "PooledRemoteMachine", Namespace: "fleet", Name: "p"}
	members := mover.Members{Objects: []mover.Member{{Observed: object.Observed{Ref: pooled, Consumer: &object.Ref{Kind: "RemoteMachine", Namespace: "fleet", Name: "a-0"}}}}}
	for _, carried := range [][]string{nil, {pooled.GroupKind()}} {
		found, err := (&scope{Transfer: &Transfer{}, spec: mover.Spec{CarryStatus: carried}, members: members}).checkObjects(t.Context())
		if refused := severityOf(found, pooled.String(), "only its status records") == mover.Error; err != nil || refused == (carried != nil) {
			t.Errorf("carried %v: error %v, findings %+v", carried, err, found)
		}
	}
}
