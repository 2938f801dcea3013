package transfer

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"scute.dev/kube"
	"scute.dev/mover"
)

// TestAFailureDialsAgain checks that the target is dialed again after refused credentials or another failure, because
// its Secret may have changed. Refused credentials are final only in the preflight.
func TestAFailureDialsAgain(t *testing.T) {
	resource := schema.GroupResource{Resource: "clusters"}
	for name, c := range map[string]struct {
		err   error
		step  mover.Step
		final bool
	}{
		"401":              {apierrors.NewUnauthorized("expired"), mover.CreateCopies, false},
		"401 in preflight": {apierrors.NewUnauthorized("expired"), mover.RunPreflight, true},
		"403":              {apierrors.NewForbidden(resource, "a", errors.New("no")), mover.CreateCopies, true},
		"404":              {apierrors.NewNotFound(resource, "a"), mover.CreateCopies, true},
		"not served":       {finalError("install it", "the target does not serve it"), mover.CreateCopies, true},
	} {
		t.Run(name, func(t *testing.T) {
			dialed := 0
			broken := errors.New("dialed")
			x := &Transfer{
				target: &kube.Cluster{}, sourceTypes: map[string]kube.Type{"ConfigMap": {}},
				Dial: func(context.Context, mover.Spec) (*kube.Cluster, error) { dialed++; return nil, broken },
			}
			failed := x.failure(c.step, c.err)
			if failed.Final != c.final || failed.Next == "" && name[:3] != "404" {
				t.Errorf("failure = %+v", failed)
			}
			if !failed.Final && strings.Contains(failed.Next, "continues by itself") {
				t.Errorf("each retried step would report that the move continues by itself: %q", failed.Next)
			}
			x.sourceTypes = map[string]kube.Type{"ConfigMap": {}} // as the next read of the source sets them
			again, err := x.Reach(t.Context(), &mover.State{}, mover.CreateCopies)
			if err != nil || again == nil || again.Message != broken.Error() || dialed != 1 {
				t.Errorf("dialed %d times: failure %+v, error %v", dialed, again, err)
			}
		})
	}
}
