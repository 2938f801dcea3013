package transfer

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

func usesClass(class object.Ref) obj {
	return obj{"topology": obj{"classRef": obj{"name": class.Name, "namespace": class.Namespace}}}
}

// classed returns a verified move of a Cluster with its ClusterClass. As the webhook of Cluster API, the source denies
// the deletion of the class while a Cluster uses it.
func classed(t *testing.T) (f *fakes, class object.Ref) {
	t.Helper()
	f, class = moved(t, mover.Verified{}), capi("ClusterClass", "k")
	f.src.merge(f.cluster, obj{"spec": usesClass(class)})
	f.state.Plan = append(f.state.Plan, mover.Item{Ref: class, Version: "v1beta2", UID: f.src.put(class, nil)})
	for i := range 2 {
		f.state.Plan[i].Level++
	}
	f.state.Created[class] = f.dst.put(class, nil)
	f.src.deny = func(r *http.Request) string {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/clusterclasses/k") {
			for _, path := range []string{"/a", "/b"} {
				if f.src.objects[kindOf(f.cluster).collection("fleet")+path] != nil {
					return `admission webhook "validation.clusterclass.cluster.x-k8s.io" denied the request: ClusterClass cannot be deleted because it is used by Cluster(s)`
				}
			}
		}
		return ""
	}
	return f, class
}

// TestAClusterIsMadeAgainBeforeItsClassIsDeleted checks that if the Cluster is created again while its ClusterClass is
// still at the source, the move names the Cluster and the commands to remove it, whether or not it is paused.
func TestAClusterIsMadeAgainBeforeItsClassIsDeleted(t *testing.T) {
	for name, paused := range map[string]bool{"active": false, "paused": true} {
		t.Run(name, func(t *testing.T) {
			f, class := classed(t)
			f.src.hook = func(r *http.Request) {
				if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/clusterclasses/k") {
					f.src.hook = nil
					spec := usesClass(class)
					spec["paused"] = paused
					f.src.put(f.cluster, obj{"spec": spec})
				}
			}
			if message, next := f.step(); !strings.Contains(message, "denied the request") || strings.Contains(next, "grant") {
				t.Errorf("message %q, next %q", message, next)
			}
			message, next := f.step()
			f.checkStranded(message, next, f.cluster.String(), "uses "+class.String(), "GitOps",
				"`kubectl patch clusters.cluster.x-k8s.io a -n fleet --type merge -p '{\"spec\":{\"paused\":true}}'`",
				"`kubectl delete clusters.cluster.x-k8s.io a -n fleet --wait=false`", `{"metadata":{"finalizers":null}}`)
			f.checkPaused(f.dst, f.cluster, true)
			f.checkExists(f.src, class)
			f.src.drop(f.cluster)
			f.run(mover.AwaitResume)
			if f.src.get(class) != nil {
				t.Error("the class was not deleted")
			}
			f.checkPaused(f.dst, f.cluster, false)
		})
	}
}

// TestAClassThatANewClusterUsesIsKept checks that the move stops if another Cluster starts to use the class after the
// plan, until it no longer does.
func TestAClassThatANewClusterUsesIsKept(t *testing.T) {
	f, class := classed(t)
	f.src.put(capi("Cluster", "b"), obj{"spec": usesClass(class)})
	message, next := f.step()
	f.checkStranded(message, next, "fleet/b", "uses "+class.String(), "another ClusterClass")
	if strings.Contains(next, "kubectl") {
		t.Errorf("Next = %q, must not remove a Cluster that is not part of the move", next)
	}
	f.checkExists(f.src, f.machine)
	f.src.drop(capi("Cluster", "b"))
	f.run(mover.AwaitResume)
}

// TestAClusterIsMadeAgainAfterItsClassWasDeleted checks that the remedy does not pause a Cluster whose ClusterClass is
// deleted: the webhook of Cluster API would deny it.
func TestAClusterIsMadeAgainAfterItsClassWasDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		finalizers []any
		cluster    bool
		says, not  string
	}{
		"nothing holds it":   {nil, true, "run `kubectl delete clusters.cluster.x-k8s.io a -n fleet --wait=false`. ", "kubectl patch"},
		"finalizers hold it": {[]any{"cluster.cluster.x-k8s.io"}, true, "create ClusterClass.cluster.x-k8s.io fleet/k as it is on the target", "nothing"},
		"a Machine alone":    {nil, false, "kubectl delete machines.cluster.x-k8s.io a-1 -n fleet", "paused\":true"},
	} {
		t.Run(name, func(t *testing.T) {
			f, class := classed(t)
			f.run(mover.RestorePauses)
			again := f.machine
			if c.cluster {
				again = f.cluster
			}
			f.src.put(again, obj{"metadata": obj{"finalizers": c.finalizers}, "spec": usesClass(class)})
			message, next := f.step()
			f.checkStranded(message, next, again.String(), "stays paused", c.says)
			if strings.Contains(next, c.not) {
				t.Errorf("Next = %q, must not contain %q", next, c.not)
			}
			f.checkPaused(f.dst, f.cluster, true)
			f.src.drop(again)
			f.run(mover.AwaitResume)
		})
	}
}

// TestTheCommandsFitIntoAStatus checks that the commands are complete in a status, even with long names.
func TestTheCommandsFitIntoAStatus(t *testing.T) {
	f := moved(t, mover.Verified{})
	long := object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: strings.Repeat("n", 63), Name: strings.Repeat("a", 63)}
	class := object.Ref{Group: object.CoreGroup, Kind: "ClusterClass", Namespace: long.Namespace, Name: strings.Repeat("k", 63)}
	f.src.put(long, obj{"metadata": obj{"finalizers": []any{"held"}}, "spec": usesClass(class)})
	f.step()
	next, err := f.transfer.removalAdvice(t.Context(), long, f.src.get(long))
	if err != nil || len(next) > 1000 {
		t.Errorf("remedy has %d characters, error %v: %s", len(next), err, next)
	}
}

// TestADenialByAdmissionIsNoMissingPermission checks that the remedy for a denial by admission is not to grant a
// permission.
func TestADenialByAdmissionIsNoMissingPermission(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "clusterclasses"}, "k", errors.New("it is used by Cluster(s): fleet/a"))
	failed := (&Transfer{}).failure(mover.DeleteSource, denied)
	if !failed.Final || strings.Contains(failed.Next, "grant") || !strings.Contains(failed.Next, "webhook") {
		t.Errorf("failure = %+v", failed)
	}
}
