package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"scute.dev/internal/redact"
	"scute.dev/kube/object"
	"scute.dev/workflow/task/access"
)

const (
	diagnoseFolderBytes    = 20 << 20
	diagnoseConfigMapBytes = 512 << 10
	diagnoseBufferBytes    = 2 * diagnoseFolderBytes
	diagnoseFiles          = 2000
	diagnoseFailures       = 10 // number of failures of one run whose evidence its directory keeps
	diagnosePods           = 50
	diagnoseEvents         = 1000
	diagnoseLogLines       = int64(300)
	diagnoseLogBytes       = int64(64 << 10)
)

type evidence struct {
	bundle
	cluster       *access.Cluster
	observed      []*unstructured.Unstructured
	lines         []eventLine
	logs          []outputFile
	errors        []error
	bufferedBytes int // of the observed objects and the logs
}

type eventLine struct {
	at   time.Time
	text string
}

func (e *evidence) addError(what string, err error) {
	e.errors = append(e.errors, fmt.Errorf("%s: %w", what, err))
}

// addObject adds an object, unless it exceeds the limits. All objects of a namespace may not fit
// into memory.
func (e *evidence) addObject(u *unstructured.Unstructured) {
	data, err := u.MarshalJSON()
	if err != nil || len(e.observed) >= diagnoseFiles || e.bufferedBytes+len(data) > diagnoseBufferBytes {
		e.omitted++
		return
	}
	e.bufferedBytes += len(data)
	e.observed = append(e.observed, u)
}

// belongsToClusters reports whether an object belongs to one of the clusters. If clusters is empty,
// it returns true.
func belongsToClusters(u *unstructured.Unstructured, clusters []string) bool {
	if len(clusters) == 0 {
		return true
	}
	name := u.GetLabels()[clusterv1.ClusterNameLabel]
	if u.GetKind() == "Cluster" {
		name = u.GetName()
	}
	return slices.Contains(clusters, name)
}

func (e *evidence) addEvent(u *unstructured.Unstructured) {
	text := func(path ...string) string { return object.Text(u, path...) }
	at, _ := time.Parse(time.RFC3339, cmp.Or(text("lastTimestamp"), text("eventTime"), text("metadata", "creationTimestamp")))
	e.lines = append(e.lines, eventLine{at, fmt.Sprintf("%s %s %s %s/%s: %s", at.UTC().Format(time.RFC3339), text("type"), text("reason"),
		text("involvedObject", "kind"), text("involvedObject", "name"), redact.Message(text("message")))})
	if len(e.lines) >= 2*diagnoseEvents {
		e.newestEvents()
	}
}

func (e *evidence) newestEvents() {
	slices.SortFunc(e.lines, func(a, b eventLine) int { return a.at.Compare(b.at) })
	if over := len(e.lines) - diagnoseEvents; over > 0 {
		e.lines = slices.Delete(e.lines, 0, over)
	}
}

// writeSummary writes the files of the collection. It writes the most useful ones first, because
// the limit omits the last ones.
func (e *evidence) writeSummary() {
	// A stable sort keeps the first of two copies: the named object, which has the content.
	slices.SortStableFunc(e.observed, func(a, b *unstructured.Unstructured) int {
		return object.Compare(object.Observe(a).Ref, object.Observe(b).Ref)
	})
	e.observed = slices.CompactFunc(e.observed, func(a, b *unstructured.Unstructured) bool { return object.Observe(a).Ref == object.Observe(b).Ref })
	var text strings.Builder
	for _, u := range e.observed {
		writeUnmetConditions(&text, u)
	}
	e.put("conditions.txt", []byte(text.String()))
	e.newestEvents()
	text.Reset()
	for _, line := range e.lines {
		text.WriteString(line.text + "\n")
	}
	e.put("events.txt", []byte(text.String()))
	if len(e.errors) > 0 {
		text.Reset()
		for _, err := range e.errors {
			text.WriteString(redact.Message(err.Error()) + "\n")
		}
		e.put("errors.txt", []byte(text.String()))
	}
	for _, u := range e.observed {
		ref := object.Observe(u).Ref
		data, err := yaml.Marshal(redactObject(u))
		if err != nil {
			continue // never: JSON can be written as YAML
		}
		e.put("objects/"+cmp.Or(ref.Namespace, "_cluster")+"/"+ref.GroupKind()+"/"+ref.Name+".yaml", data)
	}
	for _, f := range e.logs {
		e.put(f.name, f.data)
	}
}

// writeUnmetConditions writes the conditions whose status a healthy object does not have.
func writeUnmetConditions(text *strings.Builder, u *unstructured.Unstructured) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range list {
		c, ok := c.(map[string]any)
		if !ok {
			continue
		}
		name, _ := c["type"].(string)
		if good := !isNegativeCondition(name); good && c["status"] == "True" || !good && c["status"] == "False" {
			continue
		}
		message, _ := c["message"].(string)
		fmt.Fprintf(text, "%s: %v=%v %v: %s\n", object.Observe(u).Ref, c["type"], c["status"], c["reason"], redact.Message(strings.Join(strings.Fields(message), " ")))
	}
}

// isNegativeCondition reports whether a healthy object has this condition with status False.
func isNegativeCondition(condition string) bool {
	switch condition {
	case "Paused", "Deleting", "RollingOut", "Remediating", "ScalingUp", "ScalingDown", "Updating", "Reconciling", "Stalled":
		return true
	}
	return strings.HasSuffix(condition, "Pressure")
}
