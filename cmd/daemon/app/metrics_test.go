package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/export/otlp"
	"scute.dev/export/webhook"
	"scute.dev/internal/trust"
	"scute.dev/workflow"
)

func TestMetricsCountRunsAndTasks(t *testing.T) {
	log := logtest.Open(t)
	o := New()
	r := newRunner(o, newEnv(o, nil, nil, nil, log, "one"), log, "one", slog.New(slog.DiscardHandler))
	r.Adopted = nil // the run has no WorkflowRun
	message, err := json.Marshal(map[string]string{"message": "go on?"})
	if err != nil {
		t.Fatal(err)
	}
	d := &workflow.Definition{Header: workflow.Header{Name: "asks"}, Tasks: []workflow.Task{{
		Name: "ask", Stage: workflow.StageMain, Policy: v1alpha1.Abort, Steps: []workflow.Step{{Kind: "Approve", With: message}},
	}}}
	if err := r.Request(t.Context(), "ns/asks/1", "user/test", d); err != nil {
		t.Fatal(err)
	}
	if err := r.Drive(t.Context(), "ns/asks/1"); err != nil {
		t.Fatal(err)
	}
	v := newViews(usageLimits{})
	records, err := log.Read(t.Context(), eventlog.Aggregate{Kind: eventlog.KindRun, ID: "ns/asks/1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records {
		if err := v.Apply(record); err != nil {
			t.Fatal(err)
		}
	}
	c := newCollector(v, log, &resourceCounter{})
	c.version = "v1"
	got := gather(t, c)
	for _, name := range []string{"scute_log_commits", "scute_log_bytes", "scute_log_max_bytes", "scute_log_accepts_new"} {
		if got[name] == 0 {
			t.Errorf("%s = %v, want it to be positive", name, got[name])
		}
		delete(got, name)
	}
	want := map[string]float64{
		"scute_build_info v1": 1, "scute_effects_in_flight": 0, "scute_machines_unhealthy": 0, "scute_tasks succeeded": 0, "scute_tasks ignored": 0,
		"scute_tasks skipped": 0, "scute_tasks failed": 0, "scute_tasks paused": 1, "scute_tasks running": 0, "scute_tasks undone": 0,
	}
	for _, phase := range phasesOf(t, "moves") {
		want["scute_moves "+phase] = 0
	}
	for _, phase := range phasesOf(t, "workflowruns") {
		want["scute_runs "+phase] = 0
	}
	for _, phase := range remediationPhases() {
		want["scute_remediations "+string(phase)] = 0
	}
	for _, problem := range etcdProblems() {
		want["scute_etcd_problems "+string(problem)] = 0
	}
	want["scute_runs Paused"] = 1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// gather returns the values of gauges and counters by their names and labels.
func gather(t *testing.T, c ...prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return got
}

// phasesOf returns the phases that the CRD of a kind allows.
func phasesOf(t *testing.T, resource string) []string {
	t.Helper()
	raw, err := os.ReadFile("../../../config/crd/scute.dev_" + resource + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	var phases []string
	for _, v := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["phase"].Enum {
		var phase string
		if err := json.Unmarshal(v.Raw, &phase); err != nil {
			t.Fatal(err)
		}
		phases = append(phases, phase)
	}
	if len(phases) == 0 {
		t.Fatalf("the CRD of %s has no phases", resource)
	}
	return phases
}

// TestMetricsCountWhatNeedsAnOperator checks the metrics of stalled and unreadable resources, and of the last backup of
// each schedule.
func TestMetricsCountWhatNeedsAnOperator(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	stalled := func(after time.Duration) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at.Add(after))}}
	}
	runs := listCache{&v1alpha1.WorkflowRunList{Items: []v1alpha1.WorkflowRun{
		{Status: v1alpha1.WorkflowRunStatus{Conditions: stalled(time.Hour)}},
		{Status: v1alpha1.WorkflowRunStatus{Conditions: stalled(0)}},
		{Status: v1alpha1.WorkflowRunStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionFalse}}}},
		{Unreadable: v1alpha1.Unreadable{Spec: &v1alpha1.UnreadablePart{Field: "spec.deadline"}}},
	}}}
	made := metav1.NewTime(at)
	schedules := listCache{&v1alpha1.BackupScheduleList{Items: []v1alpha1.BackupSchedule{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "daily"}, Status: v1alpha1.BackupScheduleStatus{LastSuccessfulTime: &made}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "new"}},
	}}}
	stored := &resourceCounter{}
	stored.add(runs, &v1alpha1.WorkflowRunList{})
	stored.add(schedules, &v1alpha1.BackupScheduleList{})
	got := gather(t, newCollector(newViews(usageLimits{}), logtest.Open(t), stored))
	for name, want := range map[string]float64{
		"scute_resources_stalled WorkflowRun": 2, "scute_resources_stalled_timestamp_seconds WorkflowRun": 1_700_000_000,
		"scute_resources_unreadable WorkflowRun": 1, "scute_resources_unreadable BackupSchedule": 0,
		"scute_resources_stalled BackupSchedule": 0, "scute_backup_last_success_timestamp_seconds daily fleet": 1_700_000_000,
	} {
		if have, ok := got[name]; !ok || have != want {
			t.Errorf("%s = %v", name, have)
		}
	}
	if _, ok := got["scute_backup_last_success_timestamp_seconds new fleet"]; ok {
		t.Error("a schedule without a backup has a time of the last one")
	}
}

// listCache is a cache that returns the same list for each call.
type listCache struct{ list client.ObjectList }

func (r listCache) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(r.list).Elem())
	return nil
}

func (listCache) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("nothing is read alone")
}

// TestMetricsOfAppends checks that stored events are counted by type, and failed appends by reason.
func TestMetricsOfAppends(t *testing.T) {
	a := newAppends()
	m := &watermarkLog{Log: logtest.Open(t), raiseWatermark: func(context.Context, uint64) error { return nil }, appends: a}
	for _, cluster := range []string{"a", "b"} {
		commit, err := trust.Commit(trust.Bound{Cluster: cluster}, "daemon/one", 0, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Append(t.Context(), commit); err != nil && !errors.Is(err, eventlog.ErrConflict) {
			t.Fatal(err)
		}
	}
	got := gather(t, a.collectors()...)
	for name, want := range map[string]float64{
		"scute_events_total dev.scute.daemon.bound.v1": 1, "scute_log_append_failures_total Conflict": 1,
		"scute_log_append_failures_total Full": 0, "scute_log_append_duration_seconds": 2,
	} {
		if have, ok := got[name]; !ok || have != want {
			t.Errorf("%s = %v, want %v; all: %v", name, have, want, got)
		}
	}
}

// TestMetricsAreDocumented checks that docs/monitoring.md has a row for each of scute's metrics, and for no others.
func TestMetricsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `(scute_[a-z_]+)").FindAllStringSubmatch(string(raw), -1) {
		documented[row[1]] = true
	}
	all := []prometheus.Collector{newCollector(newViews(usageLimits{}), logtest.Open(t), &resourceCounter{}), &sealing{}}
	all = append(append(append(all, newAppends().collectors()...), deliveryMetrics(&webhook.Delivery{})...), tracingMetrics(&otlp.Delivery{})...)
	for name := range describe(t, all...) {
		if !documented[name] {
			t.Errorf("docs/monitoring.md has no row for `%s`", name)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("docs/monitoring.md has a row for %s, which is not a metric", name)
	}
}

// describe returns the names of the metrics that collectors describe.
func describe(t *testing.T, collectors ...prometheus.Collector) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	for _, c := range collectors {
		ch := make(chan *prometheus.Desc)
		go func() { c.Describe(ch); close(ch) }()
		for d := range ch {
			name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())
			if name == nil {
				t.Fatalf("%s has no name", d)
			}
			names[name[1]] = true
		}
	}
	return names
}
