package remediation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
)

// diary records the statuses of a namespace's requests, which are deleted together with their Machines.
type diary struct {
	namespace string
	mu        sync.Mutex
	lines     []string
	decisions map[string][]string // by machine
	phases    map[string][]v1alpha1.RemediationPhase
	messages  map[string]string // the last one of each machine
}

// keepDiary records the statuses of a namespace's requests until the test ends. It prints them and, if the test failed,
// the events.
func keepDiary(t *testing.T, namespace string) *diary {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d := &diary{
		namespace: namespace, decisions: map[string][]string{}, phases: map[string][]v1alpha1.RemediationPhase{}, messages: map[string]string{},
	}
	done := make(chan struct{})
	started := time.Now()
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			d.follow(ctx, started)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		t.Log(d)
		if t.Failed() {
			t.Log(eventsOf(namespace))
		}
	})
	return d
}

// follow follows one watch until it ends.
func (d *diary) follow(ctx context.Context, started time.Time) {
	w, err := shared.admin.Watch(ctx, &v1alpha1.SurgeRemediationList{}, client.InNamespace(d.namespace))
	if err != nil {
		select { // the API server is down
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if r, ok := e.Object.(*v1alpha1.SurgeRemediation); ok {
			d.note(started, r)
		}
	}
}

func (d *diary) note(started time.Time, r *v1alpha1.SurgeRemediation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &r.Status
	if all := d.decisions[r.Name]; s.Decision != "" && (len(all) == 0 || all[len(all)-1] != s.Decision) {
		d.decisions[r.Name] = append(all, s.Decision)
	}
	if all := d.phases[r.Name]; s.Phase != "" && (len(all) == 0 || all[len(all)-1] != s.Phase) {
		d.phases[r.Name] = append(all, s.Phase)
	}
	d.messages[r.Name] = s.Message
	line := fmt.Sprintf("%s: %s, %s: %s", r.Name, s.Phase, s.Decision, s.Message)
	if len(d.lines) == 0 || !strings.HasSuffix(d.lines[len(d.lines)-1], line) {
		d.lines = append(d.lines, fmt.Sprintf("%6.1f s: %s", time.Since(started).Seconds(), line))
	}
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return "what the requests of " + d.namespace + " said:\n  " + strings.Join(d.lines, "\n  ")
}

// decided reports whether a decision was made about a machine.
func (d *diary) decided(machine, decision string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.decisions[machine], decision)
}

// now returns the last phase and message of a machine's request.
func (d *diary) now(machine string) (v1alpha1.RemediationPhase, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.phases[machine]
	if len(all) == 0 {
		return "", ""
	}
	return all[len(all)-1], d.messages[machine]
}

func eventsOf(namespace string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	list := &corev1.EventList{}
	if err := shared.admin.List(ctx, list, client.InNamespace(namespace)); err != nil && !apierrors.IsNotFound(err) {
		return err.Error()
	}
	var lines []string
	for i := range list.Items {
		e := &list.Items[i]
		if e.InvolvedObject.APIVersion == v1alpha1.GroupVersion().String() || strings.HasPrefix(e.Source.Component, "scute") || strings.HasPrefix(e.ReportingController, "scute") {
			lines = append(lines, fmt.Sprintf("%s %s/%s %s: %s", e.LastTimestamp.Format(time.TimeOnly), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message))
		}
	}
	slices.Sort(lines)
	return "events:\n  " + strings.Join(lines, "\n  ")
}
