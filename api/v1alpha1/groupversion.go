package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion returns the API group and version of every resource in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "scute.dev", Version: "v1alpha1"}
}

// AddToScheme registers the resources of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &Move{}, &MoveList{}, &Pause{}, &PauseList{}, &WorkflowRun{}, &WorkflowRunList{},
		&RepairPolicy{}, &RepairPolicyList{}, &RepairLimits{}, &RepairLimitsList{}, &SurgeRemediation{}, &SurgeRemediationList{}, &SurgeRemediationTemplate{}, &SurgeRemediationTemplateList{},
		&BackupSchedule{}, &BackupScheduleList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
