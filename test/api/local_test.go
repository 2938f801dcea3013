package api

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apifield "k8s.io/apimachinery/pkg/util/validation/field"

	"scute.dev/config/crd"
	"scute.dev/test/harness"
)

// TestLocalSchema checks that without a cluster the wrong values of all specs are refused for the same fields as by the
// API server.
func TestLocalSchema(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	crds := definitions(t)
	serve(ctx, t, crds...)
	for _, d := range crds {
		local, err := crd.New(d.Spec.Names.Kind)
		harness.Must(t, err)
		all := slices.DeleteFunc(trials(ctx, t, admin(), d), func(wrong trial) bool { return wrong.status })
		refused := 0
		for i, err := range answers(ctx, t, all) {
			data, broken := all[i].object.MarshalJSON()
			harness.Must(t, broken)
			sent := all[i].object.DeepCopy() // with JSON's types of numbers
			harness.Must(t, sent.UnmarshalJSON(data))
			here := local.Validate(ctx, sent.Object)
			if diff := cmp.Diff(causes(err), fields(here)); diff != "" {
				t.Errorf("%s (-API server +local):\n%s%v\n%v", &all[i], diff, err, here.ToAggregate())
			}
			if err != nil {
				refused++
			}
		}
		t.Logf("%s: %d wrong values, %d refused by both", d.Spec.Names.Kind, len(all), refused)
	}
}

// causes returns the fields that an API error names.
func causes(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var names []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "<nil>" { // about the object as a whole
			names = append(names, cause.Field)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func fields(errs apifield.ErrorList) []string {
	var names []string
	for _, err := range errs {
		if err.Field != "<nil>" { // a number outside the range of its type, which is also refused by its field
			names = append(names, err.Field)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
