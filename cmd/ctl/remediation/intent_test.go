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
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/remediations"
)

// shown is a remediation whose status never changes again.
type shown struct {
	remediations.Source
	status v1alpha1.SurgeRemediationStatus
}

func (s *shown) Watch(ctx context.Context, key types.NamespacedName, fn func(*v1alpha1.SurgeRemediation) bool) error {
	if fn(&v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Status: s.status}) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// A hold that the daemon has recorded is an answer, also where another rule comes first and the phase is not Held.
func TestAnswerOfHold(t *testing.T) {
	for name, c := range map[string]struct {
		phase    v1alpha1.RemediationPhase
		sequence int64
		out, err string
	}{
		"held":                {v1alpha1.RemediationHeld, 8, "fleet/a: Held: why\n", ""},
		"another comes first": {v1alpha1.RemediationWaiting, 8, "fleet/a: Waiting: why\n", ""},
		"not recorded":        {v1alpha1.RemediationWaiting, 7, "", "no daemon has acted on it within 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out, notes bytes.Buffer
				env := cli.System("scutectl", "test")
				env.Out, env.Err = &out, &notes
				d := &Deps{Env: env, Flags: reach.New()}
				o := &intent{Deps: d, Timeout: 30 * time.Second, heard: heldNow}
				before := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a"}}
				before.Status.Phase, before.Status.LogSequence = v1alpha1.RemediationWaiting, 7
				at := &opened{Source: &shown{status: v1alpha1.SurgeRemediationStatus{Phase: c.phase, LogSequence: c.sequence, Message: "why"}}}
				err := o.answer(t.Context(), at, before)
				if out.String() != c.out {
					t.Errorf("%q, want %q", out.String(), c.out)
				}
				if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
					t.Errorf("%v, want %q", err, c.err)
				}
			})
		})
	}
}
