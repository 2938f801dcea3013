package remediation

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube"
	"scute.dev/remediator/act"
)

// problems returns the mistakes in a policy that the schema cannot detect, each with its field and
// a remedy. No objects are created for a policy with such mistakes.
func problems(p *v1alpha1.RepairPolicy) []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if wrong := p.Unreadable.Spec; wrong != nil {
		return []string{wrong.String() + ": correct it; until then nothing starts, and remediations in progress are frozen"}
	}
	for _, err := range validation.ValidateLabelSelector(&p.Spec.Selector, validation.LabelSelectorValidationOptions{}, field.NewPath("spec", "selector")) {
		say("%v: correct it; an empty selector selects all clusters of the namespace", err)
	}
	for i, step := range p.Spec.Escalation {
		if err := checkTemplate(step.Template.Raw); err != nil {
			say("spec.escalation[%d].template: %v", i, err)
		}
		for j, field := range step.FailedWhen {
			if _, err := kube.Field(nil, field.JSONPath); err != nil {
				say("spec.escalation[%d].failedWhen[%d].jsonPath: %v", i, j, err)
			}
		}
	}
	for i, c := range p.Spec.Checks.UnhealthyMachineConditions {
		if slices.Contains(derivedConditions(), c.Type) {
			say("spec.checks.unhealthyMachineConditions[%d].type: %s is derived from other conditions and from remediation: name one of the other conditions", i, c.Type)
		}
	}
	return list
}

// derivedConditions returns the conditions that a MachineHealthCheck rejects.
func derivedConditions() []string {
	return []string{
		clusterv1.ReadyCondition, clusterv1.AvailableCondition, clusterv1.MachineHealthCheckSucceededCondition,
		clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineExternallyRemediatedCondition,
	}
}

func checkTemplate(raw []byte) error {
	var object struct {
		metav1.TypeMeta `json:",inline"`
	}
	if len(raw) > act.MaxTemplateSize {
		return fmt.Errorf("it has %d bytes; the limit is %d", len(raw), act.MaxTemplateSize)
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return fmt.Errorf("it is not an object with apiVersion and kind: %w", err)
	}
	if object.APIVersion == "" || object.Kind == "" {
		return fmt.Errorf("apiVersion %q and kind %q: both are required", object.APIVersion, object.Kind)
	}
	gv, err := schema.ParseGroupVersion(object.APIVersion)
	if err != nil {
		return fmt.Errorf("apiVersion %q: write group/version", object.APIVersion)
	}
	if act.GrantsAccess(gv.WithKind(object.Kind).GroupKind()) {
		return fmt.Errorf("kind %s grants access, so scute does not create it: name the kind that your remediation controller handles", object.Kind)
	}
	return nil
}
