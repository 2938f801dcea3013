package kinds

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlapply "k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/apply"
)

// kubectlError is the final error of kubectl.
type kubectlError struct{ text string }

func (e kubectlError) Error() string { return e.text }

// kubectl applies a file like `kubectl apply --server-side`, with kubectl's own code.
func kubectl(t *testing.T, namespace, file string) (err error) {
	t.Helper()
	kubeconfig := bed.Side("one").KubeconfigPath()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	var out, errOut bytes.Buffer
	cmdutil.BehaviorOnFatal(func(text string, _ int) { panic(kubectlError{text}) })
	defer cmdutil.DefaultBehaviorOnFatal()
	defer func() {
		if told, ok := recover().(kubectlError); ok {
			err = told
		}
	}()
	cmd := kubectlapply.NewCmdApply("kubectl", cmdutil.NewFactory(flags), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	cmd.SetArgs([]string{"--server-side", "-f", file})
	return cmd.Execute()
}

// contents returns the objects of a namespace that a manifest may have created, without the fields that the API server
// sets.
func contents(ctx context.Context, t *testing.T, namespace string) map[string]any {
	t.Helper()
	found := make(map[string]any)
	for _, kind := range []string{"v1/ConfigMap", "v1/Service", "v1/Secret", "apps/v1/Deployment"} {
		at := strings.LastIndex(kind, "/")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(kind[:at])
		list.SetKind(kind[at+1:] + "List")
		harness.Must(t, admin().List(ctx, list, client.InNamespace(namespace)))
		for i := range list.Items {
			u := &list.Items[i]
			if u.GetName() == "kube-root-ca.crt" {
				continue
			}
			content := access.ContentOf(u)
			unstructured.RemoveNestedField(content, "metadata", "namespace")
			unstructured.RemoveNestedField(content, "metadata", "annotations", access.StepKeyAnnotation)
			if annotations, _, _ := unstructured.NestedMap(content, "metadata", "annotations"); len(annotations) == 0 {
				unstructured.RemoveNestedField(content, "metadata", "annotations")
			}
			for _, field := range []string{"clusterIP", "clusterIPs"} {
				unstructured.RemoveNestedField(content, "spec", field)
			}
			found[u.GetKind()+"/"+u.GetName()] = content
		}
	}
	return found
}

// asKubectl applies a text with kubectl and with the task, in different namespaces. It returns the difference of the
// results, or the task's error if the task refuses what kubectl accepts.
func asKubectl(ctx context.Context, t *testing.T, text string) (different string, refused error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "m.yaml")
	harness.Must(t, os.WriteFile(file, []byte(text), 0o600))
	var homes []string
	for range 2 {
		home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kubectl-"}}
		harness.Must(t, admin().Create(ctx, home))
		homes = append(homes, home.Name)
	}
	theirs := kubectl(t, homes[0], file)
	with, err := json.Marshal(apply.With{Files: []string{file}, Wait: new(false)})
	harness.Must(t, err)
	s := &step{t: t, kind: &apply.Kind{Clusters: clusters(true)}, namespace: homes[1], name: "apply", with: string(with)}
	if err := s.run(ctx); err != nil {
		return "", err
	}
	if theirs != nil {
		return fmt.Sprintf("kubectl says %v, and the task applied it", theirs), nil
	}
	return cmp.Diff(contents(ctx, t, homes[0]), contents(ctx, t, homes[1])), nil
}

const (
	oneMap   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"
	otherMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, labels: {l: x}}\ndata: {k: |\n    lines\n    of text\n  }\n"
)

// TestAsKubectl compares kubectl and the task for manifests in the many forms that users and tools write.
func TestAsKubectl(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	large := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: " + strings.Repeat("x", 900_000) + "}\n"
	for name, c := range map[string]struct{ text, refused string }{
		"two documents":            {oneMap + "---\n" + oneOf("b"), ""},
		"a BOM":                    {"\ufeff" + oneMap, ""},
		"UTF-16":                   {inUTF16(oneMap, binary.LittleEndian), ""},
		"two documents in UTF-16":  {inUTF16(oneMap+"---\n"+oneOf("b"), binary.BigEndian), ""}, // kubectl loses one of them
		"lines with CR LF":         {strings.ReplaceAll(oneMap+"---\n"+oneOf("b"), "\n", "\r\n"), ""},
		"lines with CR":            {strings.ReplaceAll(oneMap+"---\n"+oneOf("b"), "\n", "\r"), "another document follows"},
		"an end of a document":     {oneMap + "...\n" + oneOf("b"), "another document follows"},
		"an end and a separator":   {oneMap + "...\n---\n" + oneOf("b"), ""},
		"comments alone":           {"# nothing\n---\n" + oneMap + "---\n# nothing\n", ""},
		"JSON":                     {`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}`, ""},
		"merge keys":               {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: &l {a: b}, annotations: {<<: *l, c: d}}\n", ""},
		"a key twice":              {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: one, k: two}\n", ""},
		"a list":                   {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}\n", ""},
		"a typed list":             {"apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: a}, data: {k: v}}]\n", ""},
		"a list in a list":         {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}]\n", "kubectl refuses"},
		"a kind in lower case":     {strings.Replace(oneMap, "ConfigMap", "configmap", 1), "is spelled"},
		"a key that is a boolean":  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {n: v}\n", "put the key in quotes"},
		"a key that is a number":   {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {8080: v}\n", ""},
		"a value that is none":     {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: on}\n", "data.k"},
		"no name":                  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n", "metadata.name"},
		"a name that is a number":  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 12}\n", "put it in quotes"},
		"an unknown field":         {oneMap + "dta: {a: b}\n", "dta"},
		"nulls":                    {"apiVersion: v1\nkind: Service\nmetadata: {name: s, creationTimestamp: null}\nspec: {selector: null, ports: [{port: 80}]}\nstatus: {loadBalancer: {}}\n", ""},
		"status and server fields": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, uid: x, resourceVersion: \"7\", generation: 3, managedFields: []}\n", "any"}, // as `kubectl get -o yaml` prints it: the task accepts it
		"defaults":                 {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}}}\n", ""},
		"almost a MiB":             {large, ""},
		"binary":                   {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: !!binary aGVsbG8=}\n", "any"},
		"a date":                   {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {d: 2026-01-01}}\n", ""},
		"an empty file":            {"---\n", "there are 0 objects"},
		"quantities":               {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1, memory: 1.5Gi}}}]}}}\n", ""},
		"text for a number":        {"apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: \"80\"}]}\n", "spec.ports"},
	} {
		t.Run(name, func(t *testing.T) {
			different, refused := asKubectl(ctx, t, c.text)
			switch {
			case c.refused == "any": // it suffices that nothing is lost
			case c.refused == "kubectl refuses" && refused == nil && strings.HasPrefix(different, "kubectl says"):
			case name == "two documents in UTF-16" && refused == nil && strings.Contains(different, `"ConfigMap/b"`):
			case c.refused != "" && (refused == nil || !strings.Contains(refused.Error(), c.refused)):
				t.Errorf("refused with %v, want an error with %q", refused, c.refused)
			case c.refused == "" && (refused != nil || different != ""):
				t.Errorf("refused with %v; kubectl (-) and the task (+): %s", refused, different)
			}
		})
	}
}

// oneOf returns a ConfigMap with another name.
func oneOf(name string) string { return strings.Replace(oneMap, "name: a", "name: "+name, 1) }

func inUTF16(text string, order binary.AppendByteOrder) string {
	var encoded []byte
	for _, unit := range append([]uint16{0xfeff}, utf16.Encode([]rune(text))...) {
		encoded = order.AppendUint16(encoded, unit)
	}
	return string(encoded)
}

// TestAnythingAsKubectl compares kubectl and the task for random files.
func TestAnythingAsKubectl(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	object := rapid.Custom(func(t *rapid.T) string {
		name := rapid.StringMatching(`[a-c]`).Draw(t, "name")
		scalar := rapid.SampledFrom([]string{"v", "''", `"1"`, "'on'", "|\n    a\n    b\n", "\"\\u00e4\"", "~", "1", "yes"})
		key := rapid.SampledFrom([]string{"k", "y", "'y'", "1", "1.5", "k-2", "'on'", "\"true\""})
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata:\n  name: s%s\nspec:\n  selector: {a: b}\n  ports:\n  - {port: %d, name: %s}\n",
				rapid.SampledFrom([]string{"Service", "Service", "Service", "service"}).Draw(t, "spelling"), name, rapid.IntRange(0, 3).Draw(t, "port"), name)
		case 1:
			return fmt.Sprintf("apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: %s}\n  data: {k: v}\n- metadata: {name: l%s}\n", name, name)
		default:
			return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  %s: %s\n", name, key.Draw(t, "key"), scalar.Draw(t, "value"))
		}
	})
	taken := 0
	rapid.Check(t, func(rt *rapid.T) {
		separator := rapid.SampledFrom([]string{"---\n", "---\n", "--- # c\n", "...\n", "...\n---\n", "---\n---\n", "--- \n"})
		var text strings.Builder
		for i, o := range rapid.SliceOfN(object, 1, 3).Draw(rt, "objects") {
			if i > 0 {
				text.WriteString(separator.Draw(rt, "separator"))
			}
			text.WriteString(o)
		}
		file := text.String()
		switch rapid.IntRange(0, 7).Draw(rt, "written as") {
		case 0:
			file = "\ufeff" + file
		case 1:
			file = strings.ReplaceAll(file, "\n", "\r\n")
		case 2:
			file = strings.ReplaceAll(file, "\n", "\r")
		}
		different, refused := asKubectl(ctx, t, file)
		if different != "" {
			rt.Fatalf("kubectl (-) and the task (+): %s\nfor:\n%s", different, file)
		}
		if refused == nil {
			taken++
		}
	})
	if taken == 0 {
		t.Error("no file was applied")
	}
}
