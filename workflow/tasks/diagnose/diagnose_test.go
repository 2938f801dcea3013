package diagnose

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

func TestRedacted(t *testing.T) {
	const hidden = "hunter2hunter2"
	for name, c := range map[string]struct{ text, keep string }{
		"a Secret": {"{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: hunter2hunter2}, stringData: {b: hunter2hunter2}, type: Opaque}", "Opaque"},
		"what kubectl applied": {
			`{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"a":"hunter2hunter2"}}', note: kept}}}`, "kept",
		},
		"what another tool applied": {
			`{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {kapp.k14s.io/original: '{"apiVersion":"v1","data":{"a":"hunter2hunter2"}}', note: kept}}}`, "kept",
		},
		"managed fields":       {"{apiVersion: v1, kind: Pod, metadata: {name: p, managedFields: [{manager: hunter2hunter2}]}}", "name: p"},
		"an environment":       {"{apiVersion: v1, kind: Pod, spec: {containers: [{env: [{name: DB_PASSWORD, value: hunter2hunter2}, {name: MODE, value: fast}]}]}}", "fast"},
		"an argument":          {`{apiVersion: v1, kind: Pod, spec: {containers: [{args: ["--token=hunter2hunter2", "--v=2"]}]}}`, "--v=2"},
		"a join configuration": {"{kind: KubeadmConfig, apiVersion: x/v1, spec: {joinConfiguration: {discovery: {bootstrapToken: {token: hunter2hunter2, apiServerEndpoint: e}}}}}", "apiServerEndpoint: e"},
		"files of a machine":   {"{kind: KubeadmConfig, apiVersion: x/v1, spec: {files: [{path: /etc/x, content: hunter2hunter2}], users: [{name: u, passwd: hunter2hunter2}]}}", "/etc/x"},
		"a line of a file":     {`{kind: ConfigMap, apiVersion: v1, data: {conf: "a=1\nsecret_key = 'hunter2hunter2'\nb=2"}}`, "b=2"},
		"a camel-cased token":  {"{kind: X, apiVersion: x/v1, spec: {accessToken: hunter2hunter2, tokenRequests: []}}", "tokenRequests"},
		"a reference stays":    {"{kind: X, apiVersion: x/v1, spec: {secretRef: {name: which-secret}}}", "which-secret"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(c.text), &u.Object); err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(redactObject(u))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(got), hidden) || !strings.Contains(string(got), c.keep) {
				t.Errorf("the result contains a secret, or lacks %q:\n%s", c.keep, got)
			}
		})
	}
}

func TestBundleIsBounded(t *testing.T) {
	b := bundle{limit: 100}
	for range 5 {
		b.put("name", make([]byte, 36))
	}
	if len(b.files) != 2 || b.bytes != 80 || b.omitted != 3 {
		t.Errorf("%d files, %d bytes, %d omitted", len(b.files), b.bytes, b.omitted)
	}
	b.put("tiny", nil) // smaller files still fit
	if len(b.files) != 3 {
		t.Error("a file that fits was omitted")
	}
}

func TestEvidenceIsBounded(t *testing.T) {
	e := &evidence{bundle: bundle{limit: diagnoseFolderBytes}}
	for range 60 {
		e.addObject(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": strings.Repeat("x", 1<<20)}})
	}
	if n := len(e.observed); n == 0 || n >= 60 || e.omitted != 60-n {
		t.Errorf("%d objects are kept, %d omitted", n, e.omitted)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 5 * diagnoseEvents {
		e.addEvent(&unstructured.Unstructured{Object: map[string]any{"lastTimestamp": start.Add(time.Duration(i) * time.Second).Format(time.RFC3339)}})
	}
	if len(e.lines) >= 2*diagnoseEvents {
		t.Errorf("%d events are kept", len(e.lines))
	}
	e.newestEvents()
	if last := e.lines[len(e.lines)-1].at; len(e.lines) != diagnoseEvents || !last.Equal(start.Add((5*diagnoseEvents-1)*time.Second)) {
		t.Errorf("%d events are kept, the last of %s", len(e.lines), last)
	}
}

// TestNoAnswer checks that an unreachable API server is waited for once, rather than for each kind of evidence.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := &rest.Config{Host: "http://there.example", Transport: refused{}}
		clusters := &access.Clusters{Local: true, Own: func() (*rest.Config, error) { return config, nil }}
		began := time.Now()
		_, err := (&Kind{Clusters: clusters}).Run(t.Context(), &task.Call{Namespace: "fleet", Name: "r", Attempt: 1, With: []byte(`{}`), Progress: func(string) {}})
		if err == nil || strings.Contains(err.Error(), "events") || time.Since(began) > 20*time.Second {
			t.Errorf("Run = %v after %s", err, time.Since(began))
		}
	})
}

type refused struct{}

func (refused) RoundTrip(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
