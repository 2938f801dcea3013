package remediation

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
)

// fixedSource is a source with a remediation whose status never changes.
type fixedSource struct {
	kit.Source[*v1alpha1.SurgeRemediation]
	status v1alpha1.SurgeRemediationStatus
}

func (s *fixedSource) Watch(ctx context.Context, key types.NamespacedName, fn func(*v1alpha1.SurgeRemediation) bool) error {
	if fn(&v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 2}, Status: s.status}) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestTheAnswerIsWhatTheLogRecorded checks that the command returns as soon as the status shows the recorded request,
// even if another rule determines the phase, and that other changes of the status do not count.
func TestTheAnswerIsWhatTheLogRecorded(t *testing.T) {
	until := metav1.NewTime(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC))
	disk := &v1alpha1.RemediationHold{Until: &until, Reason: "disk"}
	type status = v1alpha1.SurgeRemediationStatus
	for name, c := range map[string]struct {
		verb     string
		status   status
		recorded bool
	}{
		"held":                      {hold, status{Phase: v1alpha1.RemediationHeld, Hold: disk}, true},
		"a pause comes first":       {hold, status{Phase: v1alpha1.RemediationWaiting, Hold: disk}, true},
		"a replacement comes first": {hold, status{Phase: v1alpha1.RemediationReplacing, Hold: disk}, true},
		"held for something else":   {hold, status{Phase: v1alpha1.RemediationHeld, Hold: &v1alpha1.RemediationHold{Until: &until}, LogSequence: 9}, false},
		"held by the policy":        {hold, status{Phase: v1alpha1.RemediationHeld, LogSequence: 9}, false},
		"decided, and cannot":       {hold, status{Phase: v1alpha1.RemediationFailed, LogSequence: 9}, false},
		"it ended":                  {hold, status{Phase: v1alpha1.RemediationRecovered, FinishedAt: &until}, true},
		"released":                  {release, status{Phase: v1alpha1.RemediationWaiting, ObservedGeneration: 2}, true},
		"not seen yet":              {release, status{Phase: v1alpha1.RemediationWaiting, ObservedGeneration: 1}, false},
		"still held":                {release, status{Phase: v1alpha1.RemediationHeld, ObservedGeneration: 2, Hold: disk}, false},
		"still aborted":             {release, status{Phase: v1alpha1.RemediationWaiting, ObservedGeneration: 2, Aborted: true}, false},
		"aborted":                   {abort, status{Phase: v1alpha1.RemediationWaiting, Aborted: true}, true},
		"nothing of it":             {abort, status{Phase: v1alpha1.RemediationWaiting, LogSequence: 9}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out, notes bytes.Buffer
				env := cli.System("scutectl", "test")
				env.Out, env.Err = &out, &notes
				k := &kit.Kit{Env: env, Flags: connect.New()}
				o := &intent{Kit: k, noun: newNoun(), wait: kit.Wait{Timeout: 30 * time.Second}, verb: c.verb}
				before := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a"}}
				before.Status.Phase, before.Status.LogSequence = v1alpha1.RemediationWaiting, 7
				asked := before.DeepCopy()
				asked.Spec.Hold = disk
				c.status.Message = "why"
				began := time.Now()
				err := o.awaitAnswer(t.Context(), &session{Kit: k, Noun: o.noun, Source: &fixedSource{status: c.status}}, before, asked)
				want, says, waited := string(c.status.Phase)+": why", "", time.Duration(0)
				if !c.recorded {
					want, says, waited = "", "no daemon has answered within 30s", o.wait.Timeout
				}
				if !strings.Contains(out.String(), want) || !c.recorded && out.Len() > 0 {
					t.Errorf("got output %q, want %q", out.String(), want)
				}
				if (err == nil) != c.recorded || err != nil && !strings.Contains(err.Error(), says) {
					t.Errorf("answer = %v, want %q", err, says)
				}
				if took := time.Since(began); took != waited {
					t.Errorf("answer took %s, want %s", took, waited)
				}
			})
		})
	}
}
