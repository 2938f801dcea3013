package doctor

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/trust"
	"scute.dev/mover"
)

// TestALogThatIsNotActedOn checks that a log that the daemon does not act on is reported as a problem.
func TestALogThatIsNotActedOn(t *testing.T) {
	log := &connect.Log{Log: logtest.Open(t)}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		mark trust.Watermark
		dir  string
		says string
	}{
		"replaced":        {mark: trust.Watermark{LogID: "6ec1f57fb01c9032", Sequence: 50}, says: "event log 6ec1f57fb01c9032 was the last to act here, up to commit 50"},
		"gone back":       {mark: trust.Watermark{LogID: log.ID(), Sequence: 1}, says: "went back"},
		"as it was":       {mark: trust.Watermark{LogID: log.ID()}},
		"of a local run":  {mark: trust.Watermark{LogID: "6ec1f57fb01c9032", Sequence: 50}, dir: ".scute"},
		"the first there": {},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: trust.LeaseNamespace, Name: trust.LeaseName, Annotations: make(map[string]string)}}
			trust.SetWatermark(lease.Annotations, c.mark)
			objects := []client.Object{lease, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "blue"}}}
			var got []result
			v := newDiagnosis(func(r result) { got = append(got, r) })
			v.flags = &connect.Flags{Dir: c.dir}
			v.cluster = &connect.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
			checkTrust(t.Context(), v, log)
			switch {
			case c.says == "" && len(got) > 0:
				t.Errorf("got %+v, want no results", got)
			case c.says != "" && (len(got) != 1 || got[0].Level != levelProblem || !strings.Contains(got[0].Message, c.says) || !strings.Contains(got[0].Remedy, "scutectl log reconcile")):
				t.Errorf("got %+v, want a problem with %q", got, c.says)
			}
		})
	}
}

// TestALogThatANewerDaemonActsOn checks that an event of a newer version is reported as a warning about scutectl, not
// as a problem of the daemon or of permissions.
func TestALogThatANewerDaemonActsOn(t *testing.T) {
	log := &connect.Log{Log: logtest.Open(t)}
	c := eventlog.Commit{Aggregate: trust.Aggregate(), ID: "newer", Events: []eventlog.Event{{Type: "dev.scute.daemon.bound.v9", Time: time.Now(), Data: []byte("{}")}}}
	if _, err := log.Append(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var got []result
	v := newDiagnosis(func(r result) { got = append(got, r) })
	v.flags = &connect.Flags{}
	v.cluster = &connect.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}).Build()}
	checkTrust(t.Context(), v, log)
	if len(got) != 1 || got[0].Level != levelWarning || !strings.Contains(got[0].Message, "bound.v9") || !strings.Contains(got[0].Remedy, "a newer one") {
		t.Errorf("got %+v", got)
	}
}

// TestAMoveThatTheLogStalls checks that a move that the log stalls is reported even if the log cannot be read.
func TestAMoveThatTheLogStalls(t *testing.T) {
	for reason, remedy := range map[trust.Reason]string{trust.Replaced: "scutectl log reconcile", trust.Newer: "run the version of scute"} {
		m := &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}, Status: v1alpha1.MoveStatus{
			Phase: mover.PhaseCreating, Message: "creating objects on the target: 0 of 27",
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: string(reason), Message: "why"}},
		}}
		var got []result
		v := newDiagnosis(nil)
		if r := v.checkObject(kindOf(v, "Move"), m, statusOf(m)); r != nil {
			got = append(got, *r)
		}
		if len(got) != 1 || got[0].Level != levelProblem || got[0].Message != "fleet/prod is stalled in Creating: why" || !strings.Contains(got[0].Remedy, remedy) {
			t.Errorf("%s: got %+v", reason, got)
		}
	}
}
