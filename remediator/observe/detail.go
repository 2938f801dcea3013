package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// requests sets Request of each machine from its SurgeRemediation, which has the machine's name.
func (l *observation) requests(ctx context.Context) error {
	for i := range l.facts.Machines {
		m := &l.facts.Machines[i]
		found := &v1alpha1.SurgeRemediation{}
		err := l.observer.cache.Get(ctx, l.key(m.Name), found)
		if absent(err) || err == nil && !matchesMachine(found, m) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the request for machine %s: %w", m.Name, err)
		}
		m.Request = request(found)
	}
	return nil
}

// matchesMachine reports whether a request is for this machine, and not for an earlier machine with
// the same name, which a request can briefly outlive.
func matchesMachine(r *v1alpha1.SurgeRemediation, m *remediator.Machine) bool {
	uid := MachineUID(r)
	return uid == "" || uid == m.UID
}

// MachineUID returns the UID of the Machine that owns a request, or "" if a user created it.
func MachineUID(r *v1alpha1.SurgeRemediation) types.UID {
	for _, ref := range r.OwnerReferences {
		if schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == clusterv1.GroupVersion.WithKind("Machine").GroupKind() {
			return ref.UID
		}
	}
	return ""
}

func request(r *v1alpha1.SurgeRemediation) *remediator.Request {
	f := &remediator.Request{UID: r.UID, Created: r.CreationTimestamp.Time, Deleting: r.DeletionTimestamp != nil, Manual: len(r.OwnerReferences) == 0, Abort: r.Spec.Abort}
	_, f.OrdersCopied = r.Annotations[object.CarriedAnnotation]
	if wrong := r.Unreadable.Spec; wrong != nil { // it may contain a hold, so assume one
		f.Hold, f.HoldReason = true, wrong.String()
	}
	if hold := r.Spec.Hold; hold != nil {
		f.Hold, f.HoldReason = true, hold.Reason
		if hold.Until != nil {
			f.HoldUntil = hold.Until.Time
		}
	}
	return f
}

// details sets ClonedFrom of the suspect machines of a control plane with a policy. It sends one
// request for each of them.
func (l *observation) details(ctx context.Context) error {
	if !remediator.OwnerKind(l.facts.Owner.Kind).IsControlPlane() || l.facts.Policy.Name == "" {
		return nil
	}
	for i := range l.facts.Machines {
		m := &l.facts.Machines[i]
		if _, made := l.created[m.UID]; !made && !suspect(m) && remediator.Judge(m, remediator.MachineMarked{}, l.facts.Policy.Checks, l.observer.now()).State == "" {
			continue
		}
		var err error
		if m.ClonedFrom, err = l.observer.clonedFrom(ctx, l.found[i]); err != nil {
			return fmt.Errorf("reading the infrastructure machine of %s: %w", m.Name, err)
		}
	}
	return nil
}

// clonedFrom returns the name of the template that the infrastructure machine was cloned from. It
// returns "" if the infrastructure machine cannot be read and a retry would not help.
func (o *Observer) clonedFrom(ctx context.Context, m *clusterv1.Machine) (string, error) {
	ref := m.Spec.InfrastructureRef
	mapping, err := o.live.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil {
		return "", retryable(err)
	}
	infra := &metav1.PartialObjectMetadata{}
	infra.SetGroupVersionKind(mapping.GroupVersionKind)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := o.live.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ref.Name}, infra); err != nil {
		return "", retryable(err)
	}
	return infra.Annotations[clusterv1.TemplateClonedFromNameAnnotation], nil
}

// retryable returns err if a retry may resolve it, and nil otherwise.
func retryable(err error) error {
	if meta.IsNoMatchError(err) || !kube.IsTransient(err) {
		return nil
	}
	return err
}

// stepObjects sets StepObjects and FailedSteps of the machines that have scute's unhealthy
// annotation or a request. No other machine can have an object of an escalation step.
func (l *observation) stepObjects(ctx context.Context) error {
	for i := range l.facts.Machines {
		m := &l.facts.Machines[i]
		if m.UnhealthyAnnotation == "" && m.Request == nil {
			continue
		}
		for _, step := range l.escalation {
			object := remediator.StepObject{Name: remediator.StepObjectName(m.Name, step.Name)}
			if object.APIVersion, object.Kind = kindOfStep(step); object.Kind == "" {
				continue // nothing can have been created from it; the write reports what is wrong
			}
			if err := l.addStepObject(ctx, m, step.Name, object, step.FailedWhen); err != nil {
				return err
			}
		}
		// Steps that the policy no longer has, or now has with another kind of object.
		for _, step := range slices.Sorted(maps.Keys(l.created[m.UID])) {
			if slices.Contains(m.StepObjects, step) {
				continue
			}
			if err := l.addStepObject(ctx, m, step, l.created[m.UID][step], nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// addStepObject adds the object of a step to the facts about a machine if the object exists. It
// treats an object whose kind is not served as absent.
func (l *observation) addStepObject(ctx context.Context, m *remediator.Machine, step string, object remediator.StepObject, failedWhen []v1alpha1.FieldValue) error {
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(object.APIVersion)
	found.SetKind(object.Kind)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := l.observer.live.Get(ctx, l.key(object.Name), found); err != nil {
		if err = retryable(err); err != nil {
			return fmt.Errorf("getting the object of step %s for machine %s: %w", step, m.Name, err)
		}
		return nil
	}
	m.StepObjects = append(m.StepObjects, step)
	if failed := failure(found, failedWhen); failed != "" {
		if m.FailedSteps == nil {
			m.FailedSteps = make(map[string]string)
		}
		m.FailedSteps[step] = failed
	}
	return nil
}

// failure returns the field and the value that show that a step's object has failed, or "" if it
// has not.
func failure(o *unstructured.Unstructured, when []v1alpha1.FieldValue) string {
	if o.GetDeletionTimestamp() != nil {
		return "" // it belongs to an earlier attempt
	}
	for _, field := range when {
		if value, err := kube.Field(o.Object, field.JSONPath); err == nil && value == field.Value {
			return field.JSONPath + " is " + value
		}
	}
	return ""
}

func kindOfStep(step v1alpha1.EscalationStep) (apiVersion, kind string) {
	var template metav1.TypeMeta // the rest may be too large to decode, which the write reports
	if kjson.UnmarshalCaseSensitivePreserveInts(step.Template.Raw, &template) != nil {
		return "", ""
	}
	return template.APIVersion, template.Kind
}
