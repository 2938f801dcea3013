package pause

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/provider"
	"scute.dev/test/scuted"
)

// stop returns how long the out-of-band reconciler takes to stop. PAUSE_STOP=20s is what Azure Service Operator may
// take.
func stop(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PAUSE_STOP")
	if text == "" {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	harness.Must(t, err)
	return d
}

// providers runs the test providers on both sides, and creates an object of a kind that belongs to a Cluster.
func providers(ctx context.Context, t *testing.T, namespace, kind, owner string) *provider.Cloud {
	t.Helper()
	cloud, running := &provider.Cloud{}, t.Context()
	for _, in := range []*scuted.Installation{shared.blue, shared.green} {
		_, err := provider.Run(running, in.Side.Config(), provider.Options{Side: in.Side.Name(), Cloud: cloud, Stop: stop(t)})
		harness.Must(t, err)
	}
	c := &clusterv1.Cluster{}
	harness.Must(t, shared.blue.Side.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner}, c))
	harness.Must(t, shared.blue.Side.Client().Create(ctx, provider.New(kind, "database", c)))
	return cloud
}

// acting waits until the last act was one of a side's out-of-band reconciler.
func acting(ctx context.Context, t *testing.T, cloud *provider.Cloud, name, side string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if acts := cloud.Acts(name); len(acts) > 0 && acts[len(acts)-1].Side == side {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s is not changed by %s: %v", name, side, cloud.Acts(name))
		}
	}
}

func kindOf(p *v1alpha1.Pause, kind string) v1alpha1.PauseKind {
	for _, k := range p.Status.Kinds {
		if k.Kind == kind+"."+provider.Group {
			return k
		}
	}
	return v1alpha1.PauseKind{}
}

// TestSlowProvider checks a provider that takes time to stop an out-of-band reconciler. A Pause is acknowledged only
// after it has stopped. The developers' check reports this, even after an earlier check was killed. During a move no
// two sides act at the same time.
func TestSlowProvider(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	const namespace, name = "slow", "slow/database"
	cluster(ctx, t, namespace, "a")
	harness.Must(t, shared.blue.PutTarget(ctx, namespace, shared.green))
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})
	cloud := providers(ctx, t, namespace, provider.SlowKind, "a")
	acting(ctx, t, cloud, name, "blue")

	p := create(ctx, t, namespace, "maintenance", "a")
	k := kindOf(until(ctx, t, namespace, p.Name, acknowledged), provider.SlowKind)
	stopped := cloud.Acts(name)
	if !k.BlockMove || !slices.Equal(k.Signals, []string{"condition"}) || k.Slowest == nil || k.Slowest.Duration < stop(t) {
		t.Errorf("acknowledgement = %+v, want block-move and the condition, after the reconciler stopped", k)
	}
	at := provider.New(provider.SlowKind, "database", &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}})
	harness.Must(t, shared.blue.Side.Client().Get(ctx, client.ObjectKeyFromObject(at), at))
	if acts, told := at.Object["status"].(map[string]any)["running"]; acts != false || !told {
		t.Errorf("status = %v, want the out-of-band reconciler stopped", at.Object["status"])
	}
	if now := cloud.Acts(name); !slices.Equal(now, stopped) {
		t.Errorf("acts during the pause: from %v to %v, want none", stopped, now)
	}
	remove(ctx, t, p)

	killed := shared.blue.Scutectl(ctx, "doctor", "provider", "a", "-n", namespace, "--yes")
	harness.Must(t, killed.Start())
	left := &v1alpha1.Pause{}
	left.Namespace, left.Name = namespace, "doctor-provider.a"
	until(ctx, t, namespace, left.Name, func(p *v1alpha1.Pause) bool { return p.Status.Phase == v1alpha1.PauseAcknowledging })
	harness.Must(t, killed.Process.Kill())
	_ = killed.Wait()
	r, out, err := doctor(ctx, "a", "-n", namespace, "--yes")
	if err != nil || !r.Passed || !strings.Contains(out, "An earlier check left Pause slow/doctor-provider.a") {
		t.Errorf("doctor = %v, want success after an earlier check: %s", err, out)
	}
	checked := r.kind(provider.SlowKind)
	if checked.Answer != "acknowledged" || checked.SlowestSeconds < stop(t).Seconds() || !slices.Equal(checked.Signals, []string{"block-move", "condition"}) {
		t.Errorf("doctor's result = %+v, want a slow acknowledgement", checked)
	}
	want(ctx, t, namespace, "a", false, 0)

	harness.Must(t, shared.blue.Create(ctx, scuted.NewMove(namespace, "moving", shared.green, "a")))
	over, err := shared.blue.Wait(ctx, namespace, "moving", scuted.Over)
	harness.Must(t, err)
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, want Succeeded: %s", over.Status.Phase, over.Status.Message)
	}
	acting(ctx, t, cloud, name, "green")
	if acts := cloud.Acts(name); len(acts) != 2 {
		t.Errorf("acts = %v, want one side after the other", acts)
	}
}

// TestMuteProvider checks a provider that never acknowledges. A Pause, a move and the developers' check name its object
// and the next step. After each of them the cluster is in its original state.
func TestMuteProvider(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	const namespace = "mute"
	cluster(ctx, t, namespace, "a")
	harness.Must(t, shared.blue.PutTarget(ctx, namespace, shared.green))
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})
	providers(ctx, t, namespace, provider.MuteKind, "a")
	const object = provider.MuteKind + "." + provider.Group + " mute/database"

	p := &v1alpha1.Pause{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "maintenance"}, Spec: v1alpha1.PauseSpec{Clusters: []string{"a"}}}
	p.Spec.Timeouts.AcknowledgeKinds = map[string]v1alpha1.Duration{provider.MuteKind + "." + provider.Group: {Duration: 2 * time.Second}}
	harness.Must(t, shared.scute.Create(ctx, p))
	late := until(ctx, t, namespace, p.Name, func(p *v1alpha1.Pause) bool {
		return p.Status.Phase == v1alpha1.PauseTimedOut && len(p.Status.WaitingFor) == 1 && p.Status.WaitingFor[0].Object == object
	})
	if s := late.Status; !strings.Contains(s.Message, "MuteService") || !strings.Contains(s.Message, "condition Paused is False") || !strings.Contains(s.Next, "delete the Pause") {
		t.Errorf("message %s; next: %s; want the object and the next step", s.Message, s.Next)
	}
	remove(ctx, t, p)
	want(ctx, t, namespace, "a", false, 0)

	r, out, err := doctor(ctx, "a", "-n", namespace, "--yes", "--timeout", "30s")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || r.Passed {
		t.Errorf("doctor = %v, want exit status 1: %s", err, out)
	}
	if k := r.kind(provider.MuteKind); k.Answer != "never" || k.Reason != "mute/database: condition Paused is False" || k.Remedy == "" {
		t.Errorf("doctor's result = %+v, want an object that never acknowledges", k)
	}
	want(ctx, t, namespace, "a", false, 0)

	moving := scuted.NewMove(namespace, "moving", shared.green, "a")
	moving.Spec.Timeouts.AcknowledgeKinds = map[string]v1alpha1.Duration{provider.MuteKind + "." + provider.Group: {Duration: 5 * time.Second}}
	harness.Must(t, shared.blue.Create(ctx, moving))
	over, err := shared.blue.Wait(ctx, namespace, "moving", scuted.Over)
	harness.Must(t, err)
	if over.Status.Phase != mover.PhaseRolledBack || !strings.Contains(over.Status.Message, "database") || over.Status.Next == "" {
		t.Errorf("phase = %s, want RolledBack: %s: %s; want a rollback with the object", over.Status.Phase, over.Status.Message, over.Status.Next)
	}
	t.Logf("%s; next: %s", over.Status.Message, over.Status.Next)
	want(ctx, t, namespace, "a", false, 0)
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, namespace, "a"))
}

// checked is the result of the developers' check in JSON.
type checked struct {
	Passed bool
	Kinds  []checkedKind
}

type checkedKind struct {
	Kind, Answer, Reason, Remedy string
	Signals                      []string
	SlowestSeconds               float64
}

func (c checked) kind(name string) checkedKind {
	for _, k := range c.Kinds {
		if k.Kind == name+"."+provider.Group {
			return k
		}
	}
	return checkedKind{}
}

func doctor(ctx context.Context, args ...string) (r checked, said string, err error) {
	cmd := shared.blue.Scutectl(ctx, append([]string{"doctor", "provider", "-o", "json"}, args...)...)
	var out, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &notes
	err = cmd.Run()
	if out.Len() > 0 {
		err = errors.Join(err, json.Unmarshal(out.Bytes(), &r))
	}
	return r, notes.String() + out.String(), err
}
