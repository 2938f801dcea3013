package task

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

const (
	diagnoseFolderBytes    = 20 << 20
	diagnoseConfigMapBytes = 512 << 10
	diagnoseFiles          = 2000
	diagnosePods           = 50
	diagnoseEvents         = 1000
	diagnoseLogLines       = int64(300)
	diagnoseLogBytes       = int64(64 << 10)
)

// bundle is a bounded collection of files. What does not fit is counted.
type bundle struct {
	limit   int
	files   []diagnosedFile
	bytes   int
	omitted int
}

type diagnosedFile struct {
	name string
	data []byte
}

func (b *bundle) put(name string, data []byte) {
	if len(b.files) >= diagnoseFiles || b.bytes+len(data)+len(name) > b.limit {
		b.omitted++
		return
	}
	b.files = append(b.files, diagnosedFile{name, data})
	b.bytes += len(data) + len(name)
}

// evidence is what one Diagnose collects.
type evidence struct {
	bundle
	cluster  *Cluster
	observed []*unstructured.Unstructured
	lines    []eventLine
	logs     []diagnosedFile
	errors   []error
}

type eventLine struct {
	at   time.Time
	text string
}

func (e *evidence) failed(what string, err error) {
	e.errors = append(e.errors, fmt.Errorf("%s: %w", what, err))
}

func (e *evidence) json(name string, v any) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		e.failed(name, err)
		return
	}
	e.put(name, data)
}

func (e *evidence) object(u *unstructured.Unstructured) { e.observed = append(e.observed, u) }

// ofClusters says whether an object belongs to one of the clusters; nil are all.
func ofClusters(u *unstructured.Unstructured, clusters []string) bool {
	if len(clusters) == 0 {
		return true
	}
	name := u.GetLabels()[clusterv1.ClusterNameLabel]
	if u.GetKind() == "Cluster" {
		name = u.GetName()
	}
	return slices.Contains(clusters, name)
}

// event takes down an event in a line.
func (e *evidence) event(u *unstructured.Unstructured) {
	text := func(path ...string) string { s, _, _ := unstructured.NestedString(u.Object, path...); return s }
	at, _ := time.Parse(time.RFC3339, cmp.Or(text("lastTimestamp"), text("eventTime"), text("metadata", "creationTimestamp")))
	e.lines = append(e.lines, eventLine{at, fmt.Sprintf("%s %s %s %s/%s: %s", at.UTC().Format(time.RFC3339), text("type"), text("reason"),
		text("involvedObject", "kind"), text("involvedObject", "name"), mover.Clean(text("message")))})
}

// pods collects the pods of a namespace that are not well, with the last lines of their logs.
func (e *evidence) pods(ctx context.Context, namespace string) {
	list := &corev1.PodList{}
	err := e.cluster.Kube.Do(ctx, "list pods", func(ctx context.Context) error {
		return e.cluster.Client.List(ctx, list, client.InNamespace(namespace))
	})
	if err != nil {
		e.failed("pods", err)
		return
	}
	clientset, err := kubernetes.NewForConfig(e.cluster.Config)
	if err != nil {
		e.failed("logs", err)
		return
	}
	taken := 0
	for i := range list.Items {
		pod := &list.Items[i]
		if podWell(pod) {
			continue
		}
		if taken++; taken > diagnosePods {
			e.omitted++
			continue
		}
		if u, err := e.cluster.get(ctx, object.Ref{Kind: "Pod", Namespace: namespace, Name: pod.Name}); err == nil {
			e.object(u)
		}
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			e.log(ctx, clientset, pod, status.Name, false)
			if status.RestartCount > 0 {
				e.log(ctx, clientset, pod, status.Name, true)
			}
		}
	}
}

func podWell(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}) && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 })
}

func (e *evidence) log(ctx context.Context, clientset kubernetes.Interface, pod *corev1.Pod, container string, previous bool) {
	name := "logs/" + pod.Namespace + "/" + pod.Name + "/" + container
	if previous {
		name += ".previous"
	}
	lines, bytes := diagnoseLogLines, diagnoseLogBytes
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	data, err := clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, TailLines: &lines, LimitBytes: &bytes,
	}).DoRaw(ctx)
	if err != nil {
		e.failed(name, err)
		return
	}
	var clean strings.Builder
	for line := range strings.Lines(withoutKeys(string(data))) {
		clean.WriteString(secretWord().ReplaceAllString(mover.Clean(strings.TrimRight(line, "\n")), "${1}"+removed) + "\n")
	}
	e.logs = append(e.logs, diagnosedFile{name + ".log", []byte(clean.String())})
}

// withoutKeys takes out what spans lines: PEM blocks.
func withoutKeys(text string) string {
	return regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`).ReplaceAllString(text, "(removed)")
}

// summary puts together what was collected, what tells most first: the bound cuts at the end.
func (e *evidence) summary() {
	// Stable: of two the one that was named comes first, and has the content.
	slices.SortStableFunc(e.observed, func(a, b *unstructured.Unstructured) int {
		return object.Compare(object.Observe(a).Ref, object.Observe(b).Ref)
	})
	e.observed = slices.CompactFunc(e.observed, func(a, b *unstructured.Unstructured) bool { return object.Observe(a).Ref == object.Observe(b).Ref })
	var text strings.Builder
	for _, u := range e.observed {
		unmet(&text, u)
	}
	e.put("conditions.txt", []byte(text.String()))
	slices.SortFunc(e.lines, func(a, b eventLine) int { return a.at.Compare(b.at) })
	if over := len(e.lines) - diagnoseEvents; over > 0 {
		e.lines = e.lines[over:]
	}
	text.Reset()
	for _, line := range e.lines {
		text.WriteString(line.text + "\n")
	}
	e.put("events.txt", []byte(text.String()))
	if len(e.errors) > 0 {
		text.Reset()
		for _, err := range e.errors {
			text.WriteString(mover.Clean(err.Error()) + "\n")
		}
		e.put("errors.txt", []byte(text.String()))
	}
	for _, u := range e.observed {
		ref := object.Observe(u).Ref
		data, err := yaml.Marshal(redacted(u))
		if err != nil {
			continue // what came as JSON goes as YAML
		}
		e.put("objects/"+orElse(ref.Namespace, "_cluster")+"/"+ref.GroupKind()+"/"+ref.Name+".yaml", data)
	}
	for _, f := range e.logs {
		e.put(f.name, f.data)
	}
}

// unmet lists the conditions of an object that are not as they are on a healthy one.
func unmet(text *strings.Builder, u *unstructured.Unstructured) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range list {
		c, ok := c.(map[string]any)
		if !ok {
			continue
		}
		name, _ := c["type"].(string)
		if good := !badWhenTrue(name); good && c["status"] == "True" || !good && c["status"] == "False" {
			continue
		}
		message, _ := c["message"].(string)
		fmt.Fprintf(text, "%s: %v=%v %v: %s\n", object.Observe(u).Ref, c["type"], c["status"], c["reason"], mover.Clean(strings.Join(strings.Fields(message), " ")))
	}
}

// badWhenTrue: conditions of Cluster API, of nodes and of kstatus that say what is under way or wrong.
func badWhenTrue(condition string) bool {
	switch condition {
	case "Paused", "Deleting", "RollingOut", "Remediating", "ScalingUp", "ScalingDown", "Updating", "Reconciling", "Stalled":
		return true
	}
	return strings.HasSuffix(condition, "Pressure")
}

// write puts the files into a folder.
func (e *evidence) write(c *Call, to string) (string, error) {
	folder := to
	if folder == "" {
		name := c.Task
		if c.Failure != nil && c.Failure.Task != "" {
			name = c.Failure.Task
		}
		folder = filepath.Join(c.Dir, "diagnostics", strings.ReplaceAll(orElse(name, "run"), "/", "_"))
	}
	for _, f := range e.files {
		path := filepath.Join(folder, filepath.FromSlash(strings.ReplaceAll(f.name, "..", "_")))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", fmt.Errorf("writing diagnostics: %w", err)
		}
		if err := os.WriteFile(path, f.data, 0o600); err != nil {
			return "", fmt.Errorf("writing diagnostics: %w", err)
		}
	}
	return folder, nil
}

// keep puts the files into a ConfigMap beside the Workflow.
func (d *Diagnose) keep(ctx context.Context, c *Call, e *evidence) (string, error) {
	own, err := d.Clusters.Open(ctx, c, ClusterRef{})
	if err != nil {
		return "", err
	}
	name := "diagnostics-" + keyHash(c)
	if c.Failure != nil {
		failed := *c
		failed.Task = c.Failure.Task + "/" + c.Task
		name = "diagnostics-" + keyHash(&failed)
	}
	data := make(map[string]any, len(e.files))
	for _, f := range e.files {
		key := regexp.MustCompile(`[^-._a-zA-Z0-9]`).ReplaceAllString(f.name, "_")
		data[key[max(0, len(key)-250):]] = strings.ToValidUTF8(string(f.data), "?")
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
	u.SetNamespace(c.Namespace)
	u.SetName(name)
	u.SetAnnotations(map[string]string{runAnnotation: c.Key()})
	u.SetCreationTimestamp(metav1.Time{})
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	err = own.Kube.Do(ctx, "write ConfigMap "+name, func(ctx context.Context) error {
		return own.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(kube.FieldManager), client.ForceOwnership)
	})
	if err != nil {
		return "", resourceError(err)
	}
	return c.Namespace + "/" + name, nil
}
