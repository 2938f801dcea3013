package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"scute.dev/workflow/task/access"
)

// TestLists checks that objects in lists, nested lists and typed lists are validated like other objects, and that the
// content of a Secret is refused.
func TestLists(t *testing.T) {
	for name, c := range map[string]struct{ manifests, says string }{
		"typed":          {`[{"apiVersion":"v1","kind":"SecretList","items":[{"metadata":{"name":"s"},"stringData":{"p":"hunter2"}}]}]`, "has its content in the manifest"},
		"nested":         {`[{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"p":"aA=="}}]}]}]`, "has its content in the manifest"},
		"text":           {`"kind: List\napiVersion: v1\nitems:\n- kind: SecretList\n  apiVersion: v1\n  items: [{metadata: {name: s}, data: {p: aA==}}]\n"`, "has its content in the manifest"},
		"lower case":     {`[{"apiVersion":"v1","kind":"secret","metadata":{"name":"s"},"data":{"p":"aA=="}}]`, "has its content in the manifest"},
		"to be filled":   {`"kind: SecretList\napiVersion: v1\nitems: [{metadata: {name: '${tasks.a.output.n}'}, stringData: {p: hunter2}}]"`, "has its content in the manifest"},
		"without a name": {`[{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}]}]`, "item 1 of List: ConfigMap has no metadata.name"},
		"no object":      {`[{"apiVersion":"v1","kind":"List","items":["a"]}]`, "item 1 of List is not an object"},
		"no kind":        {`[{"apiVersion":"v1","kind":"List","items":[{"metadata":{"name":"a"}}]}]`, "item 1 of List: it has no kind"},
		"twice":          {`[{"apiVersion":"v1","kind":"ConfigMapList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"a"}}]}]`, "is listed twice"},
	} {
		problems := fmt.Sprint((&Kind{}).Validate([]byte(`{"manifests":` + c.manifests + `}`)))
		if !strings.Contains(problems, c.says) || strings.Contains(problems, "hunter2") {
			t.Errorf("%s: problems %s", name, problems)
		}
	}
	objects, err := parseManifests([]byte("{kind: List, apiVersion: v1, items: [{kind: ConfigMapList, apiVersion: v1, items: [{metadata: {name: a}}, {metadata: {name: b}}]}, {kind: Service, apiVersion: v1, metadata: {name: c}}]}"))
	var have []string
	for _, u := range objects {
		have = append(have, access.RefOf(u).String())
	}
	if want := "[ConfigMap a ConfigMap b Service c]"; err != nil || fmt.Sprint(have) != want {
		t.Errorf("parseManifests = %v, error %v; want %s", have, err, want)
	}
}

// TestSecretsInAnyManifest checks that a Secret with content is refused before it is logged, even if other parts of the
// manifests are invalid.
func TestSecretsInAnyManifest(t *testing.T) {
	const secret, ref = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: hunter2}\n", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {x: \"${tasks.a.output.x}\"}\n"
	for name, text := range map[string]string{
		"alone":                     secret + ref,
		"with a key that changes":   strings.Replace(secret, "hunter2", "hunter2, on: x", 1) + ref,
		"before such a key":         secret + ref + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\ndata: {on: x}\n",
		"behind such a key":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\ndata: {on: x}\n---\n" + secret + ref,
		"before dots":               secret + "...\nkind: B\n" + ref,
		"behind dots":               "kind: B\n...\n" + secret + ref,
		"behind what is no YAML":    "a: [${tasks.a.output.x}\n---\n" + secret + ref,
		"in a list without names":   "apiVersion: v1\nkind: SecretList\nitems:\n- metadata: {generateName: s}\n  stringData: {p: hunter2}\n" + ref,
		"in a list with a bad item": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {p: hunter2}}\n- {apiVersion: batch/v1, kind: Job, metadata: {generateName: x}}\n" + ref,
		"that looks like a list":    secret + "items: []\n",
		"in JSON":                   `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "${tasks.a.output.x}"}}{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"p": "hunter2"}}`,
		"that cannot be parsed":     strings.Replace(secret, "hunter2}", "hunter2, q: [${tasks.a.output.x}", 1),
	} {
		with, err := json.Marshal(map[string]any{"manifests": text})
		if err != nil {
			t.Fatal(err)
		}
		if problems := fmt.Sprint((&Kind{}).Validate(with)); !strings.Contains(problems, "the log keeps") || strings.Contains(problems, "hunter2") {
			t.Errorf("%s: problems %s", name, problems)
		}
	}
	for name, text := range map[string]string{
		"a reference without quotes": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {x: ${tasks.a.output.x}}\n",
		"a Secret without content":   "apiVersion: v1\nkind: Secret\nmetadata: {name: '${tasks.a.output.x}'}\n",
	} {
		with, err := json.Marshal(map[string]any{"manifests": text})
		if err != nil {
			t.Fatal(err)
		}
		if problems := (&Kind{}).Validate(with); len(problems) > 0 {
			t.Errorf("%s: problems %v, want none", name, problems)
		}
	}
}
