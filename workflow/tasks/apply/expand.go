package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Annotations of an object that set attributes of its task when an Apply is expanded.
const (
	needsAnnotation         = "scute.dev/needs"
	failurePolicyAnnotation = "scute.dev/failure-policy"
	timeoutAnnotation       = "scute.dev/timeout"
	retryAnnotation         = "scute.dev/retry"
)

// Expand returns one task, BASE/kind-name, for each object of an Apply with expand: true. It has
// the attributes of the base, unless annotations override them, and needs the parts with its
// namespace and definition. Package manifest replaces needs for the base.
//
// The Field of a problem is relative to the task.
func Expand(base v1alpha1.TaskSpec, objects []*unstructured.Unstructured) ([]v1alpha1.TaskSpec, []workflow.Problem) {
	with, problems := expandable(&base)
	if len(problems) > 0 {
		return nil, problems
	}
	names, problems := partNames(base.Name, objects)
	if len(problems) > 0 {
		return nil, problems
	}
	e := &expansion{base: base.Name, objects: objects, names: names}
	parts := make([]v1alpha1.TaskSpec, 0, len(objects))
	for i, u := range objects {
		part := *base.DeepCopy()
		part.Name = names[i]
		part.With = &apiextensionsv1.JSON{Raw: partWith(with, u)}
		problems = append(problems, e.attributes(&part, i)...)
		parts = append(parts, part)
	}
	return parts, problems
}

// expandable returns the inputs of a task to expand. It rejects a task with hooks or an undo,
// because these would run once for each object.
func expandable(base *v1alpha1.TaskSpec) (*With, []workflow.Problem) {
	problem := func(field, message, remedy string) []workflow.Problem {
		return []workflow.Problem{{Task: base.Name, Field: field, Message: message, Remedy: remedy}}
	}
	with, problems := task.Decode[With](workflow.RawJSON(base.With))
	if len(problems) > 0 {
		return nil, problem("with."+problems[0].Field, problems[0].Message, problems[0].Remedy)
	}
	switch {
	case base.Kind != "Apply":
		return nil, problem("kind", "only Apply can be expanded", "remove with.expand")
	case len(base.Before) > 0 || len(base.After) > 0:
		return nil, problem("before", "hooks of an expanded task would run once for each object", "use separate tasks")
	case base.Undo != nil && string(base.Undo.Raw) != `"None"`:
		return nil, problem("undo", "the undo of an expanded task would run once for each object", "remove it, or use None")
	case with.Manifests != nil && with.Manifests.hasReferences():
		return nil, problem("with.manifests", "manifests from an output cannot be expanded", "remove expand, or write the manifests inline")
	}
	return &with, nil
}

// partWith returns the inputs of one part. An object from another source is read when the part
// runs: it may be a Secret, and the definition of a run is kept forever.
func partWith(base *With, u *unstructured.Unstructured) json.RawMessage {
	with := *base
	with.Expand = false
	if base.Manifests != nil {
		raw, _ := json.Marshal([]any{u.Object}) // decoded JSON can always be encoded
		with.Manifests = &Manifests{raw: raw}
	} else {
		with.Only = []access.ObjectRef{access.RefOf(u)}
	}
	data, _ := json.Marshal(with)
	return data
}

// partNames returns BASE/kind-name for each object, with the namespace and the group if necessary.
func partNames(base string, objects []*unstructured.Unstructured) ([]string, []workflow.Problem) {
	forms := []func(access.ObjectRef) string{
		func(r access.ObjectRef) string { return r.Kind + "-" + r.Name },
		func(r access.ObjectRef) string { return r.Kind + "-" + r.Namespace + "-" + r.Name },
		func(r access.ObjectRef) string { return r.Ref().GroupKind() + "-" + r.Namespace + "-" + r.Name },
	}
	names := make([]string, len(objects))
	open := make([]int, len(objects))
	for i := range open {
		open[i] = i
	}
	for _, form := range forms {
		taken := make(map[string]int)
		for _, i := range open {
			names[i] = base + "/" + strings.ToLower(form(access.RefOf(objects[i])))
			taken[names[i]]++
		}
		open = slices.DeleteFunc(open, func(i int) bool { return taken[names[i]] == 1 })
	}
	var problems []workflow.Problem
	for _, i := range open {
		problems = append(problems, workflow.Problem{
			Task: base, Field: "with", Message: access.RefOf(objects[i]).String() + " is listed twice",
			Remedy: "remove one of the two",
		})
	}
	return names, problems
}

// expansion contains the objects of an expanded task and the names of their parts, by which it
// finds the part of an object.
type expansion struct {
	base    string
	objects []*unstructured.Unstructured
	names   []string
}

// attributes sets the attributes that an object requests with annotations on the part for this
// object. It also adds the needs that follow from other objects.
func (e *expansion) attributes(part *v1alpha1.TaskSpec, i int) (problems []workflow.Problem) {
	annotations := e.objects[i].GetAnnotations()
	wrong := func(annotation string, err error, remedy string) {
		problems = append(problems, workflow.Problem{Task: part.Name, Field: "metadata.annotations[" + annotation + "]", Message: err.Error(), Remedy: remedy})
	}
	needs, err := e.needs(annotations[needsAnnotation])
	if err != nil {
		wrong(needsAnnotation, err, "write kind/name or the name of a task, with ! before it, and ? or @10m after it")
	}
	for _, n := range slices.Concat(needs, e.impliedNeeds(i)) {
		if !slices.ContainsFunc(part.Needs, func(have v1alpha1.Need) bool { return have.Task == n.Task }) {
			part.Needs = append(part.Needs, n)
		}
	}
	if v := annotations[failurePolicyAnnotation]; v != "" {
		part.FailurePolicy = v1alpha1.FailurePolicy(v)
		if all := workflow.FailurePolicies(); !slices.Contains(all, v) {
			wrong(failurePolicyAnnotation, fmt.Errorf("%q is not a failure policy", v), "use one of "+strings.Join(all, ", "))
		}
	}
	if v := annotations[timeoutAnnotation]; v != "" {
		part.Timeout, err = parseTimeout(v)
		if err != nil {
			wrong(timeoutAnnotation, err, "write a duration, for example 5m")
		}
	}
	if v := annotations[retryAnnotation]; v != "" {
		part.Retry, err = parseRetry(v)
		if err == nil {
			err = checkRetry(part.Retry)
		}
		if err != nil {
			wrong(retryAnnotation, err, "write JSON, or max,delay,factor,maxDelay[,recreate], for example 3,2s,2,30s,recreate")
		}
	}
	return problems
}

// needs parses the annotation with needs: a comma-separated list of [!]NAME[?][@TIMEOUT].
func (e *expansion) needs(text string) (needs []v1alpha1.Need, err error) {
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		n := v1alpha1.Need{On: v1alpha1.OnSuccess}
		name, inverse := strings.CutPrefix(word, "!")
		if inverse {
			n.On = v1alpha1.OnFailure
		}
		name, timeout, timed := strings.Cut(name, "@")
		before, after := strings.HasSuffix(name, "?"), strings.HasSuffix(timeout, "?")
		n.Optional = before || after
		if timed {
			if n.Timeout, err = parseTimeout(strings.TrimSuffix(timeout, "?")); err != nil {
				return nil, fmt.Errorf("%q: %w", word, err)
			}
		}
		name = strings.TrimSuffix(name, "?")
		if name == "" {
			return nil, fmt.Errorf("%q does not name a task", word)
		}
		if n.Task, err = e.taskName(name); err != nil {
			return nil, err
		}
		needs = append(needs, n)
	}
	return needs, nil
}

// taskName returns the name of the part for the object kind/name. If no object matches, it returns
// name itself.
func (e *expansion) taskName(name string) (string, error) {
	kind, object, _ := strings.Cut(name, "/")
	var found []string
	for i, u := range e.objects {
		if strings.EqualFold(u.GetKind(), kind) && u.GetName() == object {
			found = append(found, e.names[i])
		}
	}
	switch len(found) {
	case 0:
		return name, nil
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("%q is ambiguous: it can be any of %s", name, strings.Join(found, ", "))
	}
}

func (e *expansion) impliedNeeds(i int) (needs []v1alpha1.Need) {
	ref := access.RefOf(e.objects[i])
	for j, u := range e.objects {
		other := access.RefOf(u)
		home := other.IsNamespace() && ref.Namespace == other.Name
		if _, defined := scopesOf([]*unstructured.Unstructured{u})[ref.GVK().GroupKind()]; j != i && (home || defined) {
			needs = append(needs, v1alpha1.Need{Task: e.names[j], On: v1alpha1.OnSuccess})
		}
	}
	return needs
}

// parseRetry parses JSON, or max,delay,factor,maxDelay[,recreate].
func parseRetry(text string) (*v1alpha1.Retry, error) {
	retry := &v1alpha1.Retry{}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		if problems := task.DecodeStrict([]byte(text), retry); len(problems) > 0 {
			return nil, fmt.Errorf("%s", problems[0])
		}
		return retry, nil
	}
	words := strings.Split(text, ",")
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	if last := len(words) - 1; words[last] == "recreate" {
		retry.Recreate, words = true, words[:last]
	}
	if len(words) == 0 || len(words) > 4 {
		return nil, fmt.Errorf("%q must have one to four numbers", text)
	}
	var err error
	for i, word := range words {
		switch i {
		case 0:
			retry.Max, err = strconv.Atoi(word)
		case 1:
			retry.Delay, err = parseDelay(word)
		case 2:
			retry.Factor, err = strconv.ParseFloat(word, 64)
		case 3:
			retry.MaxDelay, err = parseDelay(word)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", word, err)
		}
	}
	return retry, nil
}

// checkRetry checks the limits that the schema of WorkflowRun sets for a task's retry.
func checkRetry(r *v1alpha1.Retry) error {
	switch {
	case r.Max < 0 || r.Max > 1000:
		return fmt.Errorf("%d attempts: it must be 0 to 1000", r.Max)
	case r.Factor != 0 && !(r.Factor >= 1 && r.Factor <= 100): // the condition also rejects NaN
		return fmt.Errorf("the factor is %g: it must be 1 to 100", r.Factor)
	case r.Delay.Or(0) < 0 || r.MaxDelay.Or(0) < 0:
		return errors.New("a delay is negative")
	}
	return nil
}

func parseTimeout(text string) (*v1alpha1.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%s is not positive", text)
	}
	return &v1alpha1.Duration{Duration: d}, err
}

func parseDelay(word string) (*v1alpha1.Duration, error) {
	d, err := time.ParseDuration(word)
	return &v1alpha1.Duration{Duration: d}, err
}
