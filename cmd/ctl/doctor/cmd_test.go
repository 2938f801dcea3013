package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
)

func formatResult(width int, r result) string {
	var out bytes.Buffer
	o := &options{Kit: &kit.Kit{Env: &cli.Env{
		Out: &out, Color: cli.ColorNever, Size: func(any) (int, int, bool) { return width, 24, width > 0 },
	}}}
	_ = o.Print(o.lines(r))
	return out.String()
}

func TestAResultIsOneLineInAPipeAndFitsATerminal(t *testing.T) {
	r := problem("event log", "raise its limit and, if need be, its volume", "%d of %d MiB", 1000, 1024)
	if diff := cmp.Diff("problem  event log      1000 of 1024 MiB; remedy: raise its limit and, if need be, its volume\n", formatResult(0, r)); diff != "" {
		t.Error(diff)
	}
	want := `problem  event log      1000 of 1024 MiB
                        → raise its limit and,
                          if need be, its
                          volume
`
	if diff := cmp.Diff(want, formatResult(46, r)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsWrongWithALogHasItsRemedy(t *testing.T) {
	for err, level := range map[error]level{
		eventlog.ErrGap: levelProblem, eventlog.ErrConfig: levelProblem, eventlog.ErrLocked: levelWarning, errors.New("something else"): levelProblem,
	} {
		r := explainLog("event log", &connect.Flags{Dir: "log"}, fmt.Errorf("opening: %w", err))
		if r.Level != level || r.Remedy == "" {
			t.Errorf("explainLog(%v) = %+v", err, r)
		}
	}
}

// TestADaemonWhosePodIsNotReadyIsNotOutside checks that a lease holder is not assumed to be outside of the cluster
// while a pod of the daemon is running but not ready.
func TestADaemonWhosePodIsNotReadyIsNotOutside(t *testing.T) {
	now := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: trust.LeaseNamespace, Name: trust.LeaseName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("daemon/1"), RenewTime: &metav1.MicroTime{Time: now}, LeaseDurationSeconds: new(int32(15)),
	}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "scute-system", Name: "scute-0", Labels: map[string]string{"scute.dev/component": "daemon"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "scute"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for name, c := range map[string]struct {
		objects []client.Object
		outside bool
		want    []string
	}{
		"a pod": {[]client.Object{lease, pod}, false, []string{"pod scute-system/scute-0 is Running and not ready", "no pod is ready, but a daemon is active: daemon/1 holds the lease"}},
		"none":  {[]client.Object{lease}, true, []string{"the daemon runs outside this cluster: daemon/1 holds the lease"}},
	} {
		var got []string
		v := &diagnosis{
			flags: &connect.Flags{ScuteNamespace: "scute-system"}, now: func() time.Time { return now }, report: func(r result) { got = append(got, r.Message) },
			cluster: &connect.Cluster{Client: fake.NewClientBuilder().WithObjects(c.objects...).Build()},
		}
		daemon(t.Context(), v)
		if diff := cmp.Diff(c.want, got); diff != "" || v.daemonOutside != c.outside || v.noDaemon {
			t.Errorf("%s: outside %v, unheard %v: %s", name, v.daemonOutside, v.noDaemon, diff)
		}
	}
}
