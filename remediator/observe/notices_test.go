package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
)

// TestNoticesOfANode checks that only taints and annotations of a Node that notices name are kept, and that long values
// are shortened.
func TestNoticesOfANode(t *testing.T) {
	named := []remediator.Notice{{Type: v1alpha1.NoticeNodeTaint, Key: "spot"}, {Type: v1alpha1.NoticeNodeTaint, Key: "event", Value: "stop"}, {Type: v1alpha1.NoticeNodeAnnotation, Key: "maintenance"}, {Type: v1alpha1.NoticeMachineAnnotation, Key: "other"}}
	long := strings.Repeat("x", 1000)
	for name, c := range map[string]struct {
		body, err           string
		taints, annotations map[string]string
	}{
		"both": {
			body:   `{"metadata":{"annotations":{"other":"1","maintenance":"` + long + `"}},"spec":{"taints":[{"key":"spot","value":"soon","effect":"NoSchedule"},{"key":"maintenance"}]}}`,
			taints: map[string]string{"spot": "soon"}, annotations: map[string]string{"maintenance": long[:maxTextLength] + "..."},
		},
		"one key, two effects": {
			body:   `{"spec":{"taints":[{"key":"event","value":"stop","effect":"NoSchedule"},{"key":"event","value":"other","effect":"NoExecute"}]}}`,
			taints: map[string]string{"event": "stop"},
		},
		"none":           {body: `{"metadata":{"annotations":null},"spec":{"taints":null}}`},
		"an odd one":     {body: `{"metadata":{"annotations":{"a":1}}}`, err: "annotation a"},
		"many taints":    {body: `{"spec":{"taints":[` + strings.Repeat("{},", 100) + `{}]}}`, err: "more than 100 items"},
		"no annotations": {body: `{"metadata":{"annotations":[]}}`},
	} {
		got, err := parseNode([]byte(c.body), named)
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v", name, err)
		}
		if diff := cmp.Diff([]map[string]string{c.taints, c.annotations}, []map[string]string{got.Taints, got.Annotations}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoticesOfAMachine checks that the cache keeps annotations of a Machine that a notice may name, and that the facts
// contain only those that one does name.
func TestNoticesOfAMachine(t *testing.T) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"example.com/maintenance": "now", "example.com/other": "", "example.com/long": strings.Repeat("x", 300)}}}
	stripMachine(m)
	l := &observation{found: []*clusterv1.Machine{m}, facts: &remediator.Facts{Machines: make([]remediator.Machine, 1)}}
	l.facts.Policy.Checks.Notices = notices([]v1alpha1.RepairNotice{
		{Type: v1alpha1.NoticeMachineAnnotation, Key: "example.com/maintenance", LeadTime: &v1alpha1.Duration{Duration: time.Hour}},
		{Type: v1alpha1.NoticeMachineAnnotation, Key: "example.com/long"},
		{Type: v1alpha1.NoticeNodeCondition, Key: "VMEventScheduled"},
	})
	if err := l.notices(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"example.com/maintenance": "now"}, l.facts.Machines[0].Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	want := []remediator.Notice{
		{Type: v1alpha1.NoticeMachineAnnotation, Key: "example.com/maintenance", Timed: true, Lead: time.Hour},
		{Type: v1alpha1.NoticeMachineAnnotation, Key: "example.com/long"},
		{Type: v1alpha1.NoticeNodeCondition, Key: "VMEventScheduled", Value: "True"},
	}
	if diff := cmp.Diff(want, l.facts.Policy.Checks.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}
