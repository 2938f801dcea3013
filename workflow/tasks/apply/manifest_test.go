package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestManifestsThatBecomeMuch checks that a manifest that fits into a WorkflowRun is refused if it expands to more than
// the daemon's memory allows, in any form.
func TestManifestsThatBecomeMuch(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	aliases := object + "x: &a " + strings.Repeat("z", 100<<10) + "\ny: [" + strings.Repeat("*a,", 3000) + "]\n"
	values := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "x": [` + strings.Repeat(`{"a":0},`, 120_000) + `0]}`
	for name, c := range map[string]struct {
		manifests any
		says      string
	}{
		"aliases":         {aliases, "document 1: too large: its aliases"},
		"aliases, later":  {object + "---\n" + aliases, "document 2: too large: its aliases"},
		"values as text":  {values, "too large: it has more than 100000 values"},
		"values":          {[]json.RawMessage{json.RawMessage(values)}, "too large: it has more than 100000 values"},
		"usual aliases":   {object + "data: &d {a: b}\nbinaryData: {<<: *d}\n", ""},
		"a text of lines": {object + "data: {a: '" + strings.Repeat("1, 2, 3,", 30_000) + "'}\n", ""},
	} {
		with, err := json.Marshal(map[string]any{"manifests": c.manifests})
		if err != nil {
			t.Fatal(err)
		}
		if problems := fmt.Sprint((&Kind{}).Validate(with)); c.says == "" && problems != "[]" || !strings.Contains(problems, c.says) || strings.Contains(problems, "zzz") {
			t.Errorf("%s: problems %.300s", name, problems)
		}
	}
}

// TestSecretsInManifestsToBeFilledIn checks that the content of a Secret is refused before it is logged, even in
// manifests with references to outputs.
func TestSecretsInManifestsToBeFilledIn(t *testing.T) {
	const with = `{"manifests": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n%s: {password: hunter2}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${tasks.b.output.name}'}\n"}`
	for field, refused := range map[string]bool{"stringData": true, "data": true, "immutable": false} {
		if problems := (&Kind{}).Validate(fmt.Appendf(nil, with, field)); (len(problems) == 1) != refused {
			t.Errorf("%s: problems %v", field, problems)
		}
	}
}
