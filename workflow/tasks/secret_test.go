package tasks_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"scute.dev/workflow"
	"scute.dev/workflow/tasks/exec"
	"scute.dev/workflow/tasks/httprequest"
	"scute.dev/workflow/tasks/job"
)

// TestSecretsAreNotInputs checks that inputs with a secret, literal or from an output, are rejected, because the log
// would keep it forever.
func TestSecretsAreNotInputs(t *testing.T) {
	for _, c := range []struct {
		kind interface {
			Validate(json.RawMessage) []workflow.Problem
		}
		with  string
		field string // "" means valid
	}{
		{&httprequest.Kind{}, `{"url": "https://example.com/?page=1&tokens=2"}`, ""},
		{&httprequest.Kind{}, `{"url": "https://example.com/?page_token=${tasks.list.output.body.next:-}&pageToken=x"}`, ""},
		{&httprequest.Kind{}, `{"url": "https://example.com/?access_token=x"}`, "url"},
		{&httprequest.Kind{}, `{"url": "https://example.com", "headers": {"x-api-key": "x"}}`, "headers.x-api-key"},
		{&httprequest.Kind{}, `{"url": "https://example.com", "queryFrom": [{"name": "token"}]}`, "queryFrom[0]"},
		{&httprequest.Kind{}, `{"url": "https://example.com/${tasks.a.output.id}?page=1&token=${tasks.a.output.x}"}`, "url"},
		{&httprequest.Kind{}, `{"url": "https://example.com/${tasks.a.output.id}?token=x"}`, "url"},
		{&httprequest.Kind{}, `{"url": "${tasks.a.output.url}?a=b@c&access%5Ftoken=x#d"}`, "url"},
		{&httprequest.Kind{}, `{"url": "https://example.com/?token=${tasks.a.output.id:-x}"}`, "url"},
		{&httprequest.Kind{}, `{"url": "https://u:p@example.com/${tasks.a.output.id}"}`, "url"},
		{&httprequest.Kind{}, `{"url": "https://u:${tasks.a/b.output.password}@example.com/"}`, "url"},
		{&httprequest.Kind{}, `{"url": "${tasks.a.output.url:-https://u:p@example.com}/x"}`, "url"},
		{&httprequest.Kind{}, `{"url": "https://u:${tasks.a.output.password:-a/b?c#d}@example.com/"}`, "url"},
		{&httprequest.Kind{}, `{"url": "https://example.com/?token=${tasks.a.output.id:-}"}`, "url"},
		{&httprequest.Kind{}, `{"url": "https://example.com/?a=1;token=x"}`, "url"},
		{&httprequest.Kind{}, `{"url": "https://example.com/${tasks.a.output.id:-#}?token=x"}`, "url"},
		{&httprequest.Kind{}, `{"url": "${tasks.a.output.registry:-https://registry.example.com/}@scope/pkg"}`, ""},
		{&httprequest.Kind{}, `{"url": "https://example.com${tasks.a.output.path:-/v1/}@scope/pkg"}`, ""},
		{&httprequest.Kind{}, `{"url": "https://[${tasks.a.output.ip}]:${tasks.a.output.port}/@x?to=a@b"}`, ""},
		{&httprequest.Kind{}, `{"url": "https://example.com", "headers": {"Authorization": "Bearer ${tasks.a.output.x}"}}`, "headers.Authorization"},
		{&httprequest.Kind{}, `{"url": "https://example.com", "headers": {"Authorization": "Bearer ${tasks.a.output.x:-y}"}}`, "headers.Authorization"},
		{&exec.Kind{Enabled: true}, `{"command": ["x"], "env": {"DB_PASSWORD": "x"}}`, "env.DB_PASSWORD"},
		{&exec.Kind{Enabled: true}, `{"command": ["x"], "env": {"DB_PASSWORD": "x${tasks.a.output.x}"}}`, "env.DB_PASSWORD"},
		{&exec.Kind{Enabled: true}, `{"command": ["x"], "env": {"DB_PASSWORD": "x${HOME}"}}`, "env.DB_PASSWORD"},
		{&exec.Kind{Enabled: true}, `{"command": ["x"], "env": {"DB_PASSWORD_FILE": "x", "DB_PASSWORD": "${tasks.a.output.x}"}}`, "env.DB_PASSWORD"},
		{&job.Kind{}, `{"image": "x", "env": [{"name": "API_TOKEN", "value": "x"}]}`, "env[0].value"},
		{&job.Kind{}, `{"image": "x", "env": [{"name": "API_TOKEN", "value": "x-${tasks.a.output.x}"}]}`, "env[0].value"},
		{&job.Kind{}, `{"image": "x", "env": [{"name": "API_TOKEN", "value": "${tasks.a.output.x}"}]}`, "env[0].value"},
		{&job.Kind{}, `{"image": "x", "env": [{"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}`, ""},
		{&job.Kind{}, template(`"containers": [{"name": "a", "env": [{"name": "PGPASSWORD", "value": "$(FROM_SECRET)"}, {"name": "ALLOW_EMPTY_PASSWORD", "value": "yes"}]}]`), ""},
		{&job.Kind{}, template(`"containers": [{"name": "a", "env": [{"name": "MYSQL_RANDOM_ROOT_PASSWORD", "value": "1"}, {"name": "AUTHORIZATION", "value": "Bearer $(TOKEN)"}, {"name": "PGPASSWORD", "value": "$(A)$(B)"}]}]`), ""},
		{&job.Kind{}, template(`"containers": [{"name": "a", "env": [{"name": "AUTHORIZATION", "value": "Bearer x"}]}]`), "template.template.spec.containers[0].env[0].value"},
		{&job.Kind{}, template(`"containers": [{"name": "a", "env": [{"name": "PGPASSWORD", "value": "$(FROM_SECRET)x"}]}]`), "template.template.spec.containers[0].env[0].value"},
		{&job.Kind{}, template(`"containers": [{"name": "a", "env": [{"name": "A", "value": "x"}, {"name": "API_TOKEN", "value": "x"}]}]`), "template.template.spec.containers[0].env[1].value"},
		{&job.Kind{}, template(`"containers": [{"name": "a"}], "initContainers": [{"name": "b", "env": [{"name": "API_TOKEN", "value": "x"}]}]`), "template.template.spec.initContainers[0].env[0].value"},
	} {
		var fields []string
		for _, p := range c.kind.Validate(json.RawMessage(c.with)) {
			fields = append(fields, p.Field)
		}
		if want := fmt.Sprint([]string{c.field}); fmt.Sprint(fields) != want && (c.field != "" || len(fields) > 0) {
			t.Errorf("%s: problems with %v, want %s", c.with, fields, want)
		}
	}
}

func template(pod string) string { return `{"template": {"template": {"spec": {` + pod + `}}}}` }
