package app

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/projection"
	"scute.dev/internal/usage"
	"scute.dev/workflow"
)

func TestMetricsCountRunsAndTasks(t *testing.T) {
	log := logtest.Open(t)
	o := New()
	r := newRunner(o, newEnv(o, nil, nil, nil, log, "one"), log, "one", slog.New(slog.DiscardHandler))
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
	v := projection.New(usage.Limits{})
	records, err := log.Read(t.Context(), eventlog.Aggregate{Kind: eventlog.KindRun, ID: "ns/asks/1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records {
		if err := v.Apply(record); err != nil {
			t.Fatal(err)
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(v, log, &unreadable{}))
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
			got[name] = m.GetGauge().GetValue()
		}
	}
	for _, name := range []string{"scute_log_commits", "scute_log_bytes", "scute_log_max_bytes", "scute_log_accepts_new", "scute_log_epoch"} {
		if got[name] == 0 {
			t.Errorf("%s is %v", name, got[name])
		}
		delete(got, name)
	}
	want := map[string]float64{
		"scute_runs Paused": 1, "scute_effects_in_flight": 0, "scute_log_closed_bytes": 0, "scute_machines_unhealthy": 0, "scute_tasks succeeded": 0, "scute_tasks ignored": 0, "scute_tasks skipped": 0,
		"scute_tasks failed": 0, "scute_tasks paused": 1, "scute_tasks running": 0, "scute_tasks undone": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
