package act

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube"
	"scute.dev/remediator"
)

const (
	// MaxTemplateSize bounds the template of an escalation step, and maxValueSize each value that
	// replaces a placeholder, both in bytes. The object may be larger than the template.
	MaxTemplateSize = 64 << 10
	maxValueSize    = 1 << 10
)

// StepLabel is the label of a step's object that contains the name of its machine, shortened to a
// label value.
const StepLabel = "scute.dev/remediation"

func (d *execution) createStepObject(ctx context.Context) error {
	template, err := d.template(ctx)
	if err != nil {
		return err
	}
	if template == nil {
		return preconditionFailed("the RepairPolicy %s no longer has step %q", d.facts.Policy.Name, d.Value)
	}
	m, err := d.machine(ctx)
	if err != nil {
		return d.whenGone(err, true, machineGone)
	}
	made, err := d.stepObject(ctx, template, m)
	if err != nil {
		return fmt.Errorf("RepairPolicy %s: spec.escalation[%s].template: %w", d.facts.Policy.Name, d.Value, err)
	}
	if there, err := d.stepObjectExists(ctx, made); err != nil || there {
		return err
	}
	if err := d.checkAllowed(ctx, m); err != nil {
		return err
	}
	err = d.create(ctx, made.DeepCopy())
	if apierrors.IsAlreadyExists(err) { // the response to a first attempt was lost
		_, err = d.stepObjectExists(ctx, made)
	}
	return err
}

func (d *execution) stepObjectExists(ctx context.Context, made *unstructured.Unstructured) (bool, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(made.GroupVersionKind())
	err := d.get(ctx, client.ObjectKeyFromObject(made), found)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	case !d.isStepObject(found):
		return false, preconditionFailed("%s %s exists, and scute did not create it for this machine: rename it, or the step of the policy", made.GetKind(), made.GetName())
	case found.DeletionTimestamp != nil:
		return false, preconditionFailed("the %s %s of an earlier attempt is still being deleted", made.GetKind(), made.GetName())
	default:
		return true, nil
	}
}

// deleteStepObject deletes the object of an escalation step if scute created it. If neither the log
// nor the policy contains the object's kind, it does nothing: the object is deleted with the
// Machine that owns it.
func (d *execution) deleteStepObject(ctx context.Context) error {
	object := d.Object
	if object == nil {
		template, err := d.template(ctx)
		if err != nil || template == nil {
			return err
		}
		object = &remediator.StepObject{APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Name: remediator.StepObjectName(d.Machine.Name, d.Value)}
	}
	found := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: object.APIVersion, Kind: object.Kind}}
	key := types.NamespacedName{Namespace: d.facts.Owner.Namespace, Name: object.Name}
	err := d.get(ctx, key, found)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil || !d.isStepObject(found) || found.DeletionTimestamp != nil {
		return err
	}
	err = call(ctx, fmt.Sprintf("deleting %s %s", found.Kind, key.Name), func(ctx context.Context) error {
		return d.Client.Delete(ctx, found, client.Preconditions{UID: &found.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
	return client.IgnoreNotFound(err)
}

func (d *execution) isStepObject(o client.Object) bool {
	return o.GetLabels()[StepLabel] == labelValue(d.Machine.Name) && d.belongsToMachine(o)
}

// template returns the template of the action's escalation step in the RepairPolicy, or nil if the
// policy or the step does not exist.
func (d *execution) template(ctx context.Context) (*unstructured.Unstructured, error) {
	key, name := types.NamespacedName{Namespace: d.facts.Owner.Namespace, Name: d.facts.Policy.Name}, d.Value
	if key.Name == "" {
		return nil, nil
	}
	policy := &v1alpha1.RepairPolicy{}
	if err := d.get(ctx, key, policy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	for _, step := range policy.Spec.Escalation {
		if step.Name != name {
			continue
		}
		template := &unstructured.Unstructured{}
		if n := len(step.Template.Raw); n > MaxTemplateSize {
			return nil, fmt.Errorf("RepairPolicy %s: spec.escalation[%s].template has %d bytes; the limit is %d", key.Name, name, n, MaxTemplateSize)
		}
		if err := template.UnmarshalJSON(step.Template.Raw); err != nil {
			return nil, fmt.Errorf("RepairPolicy %s: spec.escalation[%s].template is not an object with apiVersion and kind: %w", key.Name, name, err)
		}
		return template, nil
	}
	return nil, nil
}

// stepObject returns the object that a template defines for a machine, with its placeholders
// replaced. Of the template's metadata, it uses only labels and annotations.
func (d *execution) stepObject(ctx context.Context, template *unstructured.Unstructured, m *clusterv1.Machine) (*unstructured.Unstructured, error) {
	if err := d.checkTemplate(template); err != nil {
		return nil, err
	}
	words, err := d.placeholders(ctx, template, m)
	if err != nil {
		return nil, err
	}
	filled := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range template.Object {
		if key != "metadata" && key != "status" {
			filled.Object[key] = fill(value, words)
		}
	}
	filled.SetGroupVersionKind(template.GroupVersionKind())
	filled.SetNamespace(m.Namespace)
	filled.SetName(remediator.StepObjectName(m.Name, d.Value))
	labels := map[string]string{}
	for key, value := range template.GetLabels() {
		labels[key] = words.Replace(value)
	}
	labels[StepLabel] = labelValue(m.Name)
	filled.SetLabels(labels)
	annotations := map[string]string{}
	for key, value := range template.GetAnnotations() {
		annotations[key] = words.Replace(value)
	}
	filled.SetAnnotations(annotations)
	filled.SetOwnerReferences([]metav1.OwnerReference{machineReference(m)})
	return filled, nil
}

var infrastructure = regexp.MustCompile(`\$\{infrastructure((?:\.[A-Za-z0-9_-]+)+)\}`)

// placeholders returns the replacements of a template's placeholders. It reads the infrastructure
// machine only if the template refers to it.
func (d *execution) placeholders(ctx context.Context, template *unstructured.Unstructured, m *clusterv1.Machine) (*strings.Replacer, error) {
	pairs := []string{"${machine}", m.Name, "${node}", m.Status.NodeRef.Name, "${cluster}", m.Spec.ClusterName, "${namespace}", m.Namespace}
	raw, err := template.MarshalJSON()
	if err != nil {
		return nil, err
	}
	named := make(map[string]string) // field paths by placeholder
	for _, word := range infrastructure.FindAllSubmatch(raw, -1) {
		named[string(word[0])] = string(word[1])
	}
	if len(named) == 0 {
		return strings.NewReplacer(pairs...), nil
	}
	of, err := d.infrastructure(m)
	if err != nil {
		return nil, fmt.Errorf("getting kind %s: %w", m.Spec.InfrastructureRef.Kind, err)
	}
	infra := &unstructured.Unstructured{}
	infra.SetGroupVersionKind(of.GroupVersionKind())
	if err := d.get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: of.Name}, infra); err != nil {
		return nil, err
	}
	return fields(infra, named, pairs)
}

func fields(infra *unstructured.Unstructured, named map[string]string, pairs []string) (*strings.Replacer, error) {
	for word, path := range named {
		value, err := kube.Field(infra.Object, path)
		switch {
		case err != nil:
			return nil, err
		case value == "":
			return nil, fmt.Errorf("%s: the %s %s has no such field: correct the template", word, infra.GetKind(), infra.GetName())
		case len(value) > maxValueSize:
			return nil, fmt.Errorf("%s: the %s %s has more than %d bytes there: name a field with one value", word, infra.GetKind(), infra.GetName(), maxValueSize)
		}
		pairs = append(pairs, word, value)
	}
	return strings.NewReplacer(pairs...), nil
}

// GrantsAccess reports whether objects of a kind grant permissions. The daemon would create them
// with its own permissions, so a user who may write a RepairPolicy could escalate their privileges.
func GrantsAccess(kind schema.GroupKind) bool {
	return kind.Group == "rbac.authorization.k8s.io" || kind.Group == "" && (kind.Kind == "Secret" || kind.Kind == "ServiceAccount")
}

// checkTemplate returns an error if the template defines an object that no policy may create. It
// checks this even if admission accepted the policy.
func (d *execution) checkTemplate(template *unstructured.Unstructured) error {
	gvk := template.GroupVersionKind()
	if GrantsAccess(gvk.GroupKind()) {
		return fmt.Errorf("a policy may not create a %s, because it grants access: name the kind that your remediation controller handles", gvk.Kind)
	}
	if in := template.GetNamespace(); in != "" && in != d.facts.Owner.Namespace {
		return fmt.Errorf("metadata.namespace is %s: remove it, the object is created in the policy's namespace", in)
	}
	mapping, err := d.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("getting kind %s: %w", gvk.Kind, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return errors.New("a " + gvk.Kind + " is cluster-scoped: only objects in the policy's namespace are created")
	}
	return nil
}

func fill(value any, words *strings.Replacer) any {
	switch value := value.(type) {
	case string:
		return words.Replace(value)
	case []any:
		filled := make([]any, len(value))
		for i, v := range value {
			filled[i] = fill(v, words)
		}
		return filled
	case map[string]any:
		filled := make(map[string]any, len(value))
		for key, v := range value {
			filled[key] = fill(v, words)
		}
		return filled
	default:
		return value
	}
}
