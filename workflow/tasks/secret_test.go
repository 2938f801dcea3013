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

// TestSecretsAreNotInputs: a secret in a manifest would be in the log forever.
func TestSecretsAreNotInputs(t *testing.T) {
	for _, c := range []struct {
		kind interface {
			Validate(json.RawMessage) []workflow.Problem
		}
		with  string
		field string // "" is fine
	}{
		{&httprequest.Kind{}, `{"url": "https://example.com/?page=1&tokens=2"}`, ""},
		{&httprequest.Kind{}, `{"url": "https://example.com/?access_token=x"}`, "url"},
		{&httprequest.Kind{}, `{"url": "https://example.com", "headers": {"x-api-key": "x"}}`, "headers.x-api-key"},
		{&httprequest.Kind{}, `{"url": "https://example.com", "queryFrom": [{"name": "token"}]}`, "queryFrom[0]"},
		{&exec.Kind{Enabled: true}, `{"command": ["x"], "env": {"DB_PASSWORD": "x"}}`, "env.DB_PASSWORD"},
		{&exec.Kind{Enabled: true}, `{"command": ["x"], "env": {"DB_PASSWORD_FILE": "x", "DB_PASSWORD": "${tasks.a.output.x}"}}`, ""},
		{&job.Kind{}, `{"image": "x", "env": [{"name": "API_TOKEN", "value": "x"}]}`, "env[0].value"},
		{&job.Kind{}, `{"image": "x", "env": [{"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}`, ""},
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
