package chart_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestAlerts checks that each alert is a valid expression for the release's namespace, has advice, and is documented.
func TestAlerts(t *testing.T) {
	r := render(t, "metrics.enabled=true", "metrics.rules.enabled=true", "metrics.rules.labels.release=stack")
	if len(r.alerts) != 1 || r.alerts[0].Labels["release"] != "stack" {
		t.Fatalf("want one PrometheusRule with the label, got %v", r.alerts)
	}
	page := monitoringPage(t)
	for _, rule := range r.alerts[0].Spec.Groups[0].Rules {
		expr := rule.Expr.String()
		parse(t, expr)
		for _, selector := range regexp.MustCompile(`scute_[a-z_]+(\{[^}]*)?`).FindAllStringSubmatch(expr, -1) {
			if !strings.HasPrefix(selector[1], `{namespace="scute-system"`) {
				t.Errorf("%s: %s is not limited to the release's namespace", rule.Alert, selector[0])
			}
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || !slices.Contains([]string{"critical", "warning"}, rule.Labels["severity"]) {
			t.Errorf("%s: annotations %v, labels %v", rule.Alert, rule.Annotations, rule.Labels)
		}
		if !strings.Contains(page, "| "+rule.Alert+" |") {
			t.Errorf("docs/monitoring.md has no row for %s", rule.Alert)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (Scute[A-Za-z]+) \|`).FindAllStringSubmatch(page, -1) {
		if !slices.ContainsFunc(r.alerts[0].Spec.Groups[0].Rules, func(rule monitoringv1.Rule) bool { return rule.Alert == row[1] }) {
			t.Errorf("docs/monitoring.md has a row for %s, which is not an alert", row[1])
		}
	}
}

func parse(t *testing.T, expr string) {
	t.Helper()
	if _, err := metricsql.Parse(expr); err != nil {
		t.Errorf("%s: %v", expr, err)
	}
}

func monitoringPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestDashboard checks that each expression is valid, and that the ConfigMap has the label by which Grafana finds it.
func TestDashboard(t *testing.T) {
	r := render(t, "metrics.enabled=true", "metrics.dashboard.enabled=true")
	i := slices.IndexFunc(r.configMaps, func(c corev1.ConfigMap) bool { return c.Labels["grafana_dashboard"] == "1" })
	if i < 0 {
		t.Fatalf("no ConfigMap has the label: %v", r.configMaps)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(r.configMaps[i].Data["scute.json"]), &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$namespace", ".*", "$__rate_interval", "5m")
	n := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			n++
			parse(t, variables.Replace(target.Expr))
		}
	}
	if n < 20 {
		t.Errorf("got %d expressions, want at least 20", n)
	}
}

// TestMetricsOfTheChartExist checks that the alerts and the dashboard use only metrics in docs/monitoring.md. A test of
// the daemon checks that the page is complete.
func TestMetricsOfTheChartExist(t *testing.T) {
	page := monitoringPage(t)
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		text, err := os.ReadFile(path + "/files/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`scute_[a-z_]+`).FindAllString(string(text), -1) {
			if name = strings.TrimSuffix(name, "_bucket"); !strings.Contains(page, "| `"+name) {
				t.Errorf("%s uses %s, which is not in docs/monitoring.md", file, name)
			}
		}
	}
}

// TestPodMonitor checks that the PodMonitor selects the daemon's pods and an existing port, and is rejected if metrics
// listen only on the loopback interface.
func TestPodMonitor(t *testing.T) {
	r := render(t, "metrics.enabled=true", "metrics.podMonitor.enabled=true", "metrics.podMonitor.interval=30s", "metrics.podMonitor.labels.release=stack")
	if len(r.monitors) != 1 {
		t.Fatalf("got %d PodMonitors, want 1", len(r.monitors))
	}
	m, pod := r.monitors[0], r.daemon()
	for label, value := range m.Spec.Selector.MatchLabels {
		if pod.Labels[label] != value {
			t.Errorf("the pods have %s=%q, the PodMonitor selects %q", label, pod.Labels[label], value)
		}
	}
	e := m.Spec.PodMetricsEndpoints[0]
	if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == *e.Port }) {
		t.Errorf("the pods have no port named %s", *e.Port)
	}
	if e.Interval != monitoringv1.Duration("30s") || m.Labels["release"] != "stack" {
		t.Errorf("got interval %s, labels %v", e.Interval, m.Labels)
	}
	if _, complaint := template(t, "metrics.podMonitor.enabled=true"); complaint == "" {
		t.Error("a PodMonitor of unreachable metrics is accepted")
	}
}

// TestNetworkPolicy checks that only the port of enabled metrics can be reached, and only from the configured sources.
func TestNetworkPolicy(t *testing.T) {
	if r := render(t, "networkPolicy.enabled=true"); len(r.policies) != 1 || len(r.policies[0].Spec.Ingress) != 0 ||
		!slices.Equal(r.policies[0].Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Errorf("want a policy that allows no ingress, got %+v", r.policies)
	}
	r := render(t, "networkPolicy.enabled=true", "metrics.enabled=true",
		"networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=monitoring")
	ingress := r.policies[0].Spec.Ingress
	if len(ingress) != 1 || *ingress[0].Ports[0].Port != intstr.FromString("metrics") {
		t.Fatalf("want only the port of the metrics, got %+v", ingress)
	}
	if len(ingress[0].From) != 1 || ingress[0].From[0].NamespaceSelector.MatchLabels["team"] != "monitoring" {
		t.Errorf("got sources %+v", ingress[0].From)
	}
	for label, value := range r.policies[0].Spec.PodSelector.MatchLabels {
		if r.daemon().Labels[label] != value {
			t.Errorf("the pods have no label %s=%s", label, value)
		}
	}
}

// TestPod checks that settings for the pods are added to those that scute needs, and that OpenShift can choose the
// user.
func TestPod(t *testing.T) {
	pod := render(t, "podLabels.team=fleet", "podAnnotations.a=b", "extraEnv[0].name=HTTPS_PROXY", "extraEnv[0].value=http://proxy:3128",
		"tracing.endpoint=https://collector:4317", "topologySpreadConstraints[0].topologyKey=zone", "topologySpreadConstraints[0].maxSkew=1",
		"topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
		"podSecurityContext.runAsUser=null", "podSecurityContext.runAsGroup=null", "podSecurityContext.fsGroup=null").daemon()
	if pod.Labels["team"] != "fleet" || pod.Labels["scute.dev/component"] != "daemon" || pod.Annotations["a"] != "b" {
		t.Errorf("got labels %v, annotations %v", pod.Labels, pod.Annotations)
	}
	var env []string
	for _, e := range pod.Spec.Containers[0].Env {
		env = append(env, e.Name)
	}
	if !slices.Equal(env, []string{"HTTPS_PROXY", "OTEL_EXPORTER_OTLP_ENDPOINT"}) {
		t.Errorf("got variables %v", env)
	}
	if c := pod.Spec.SecurityContext; c.RunAsUser != nil || c.RunAsGroup != nil || c.FSGroup != nil || !*c.RunAsNonRoot {
		t.Errorf("got security context %+v", c)
	}
	if len(pod.Spec.TopologySpreadConstraints) != 1 {
		t.Error("the topology spread constraint is missing")
	}
	if _, complaint := template(t, "podSecurityContext.runAsUser=0"); complaint == "" {
		t.Error("runAsUser=0 is accepted")
	}
}
