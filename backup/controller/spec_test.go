package controller

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
)

func validSchedule() *v1alpha1.BackupSchedule {
	return &v1alpha1.BackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "nightly", UID: "0123456789", Generation: 3},
		Spec: v1alpha1.BackupScheduleSpec{
			Schedule: "@daily", Clusters: v1alpha1.BackupSelection{All: true}, Encryption: v1alpha1.BackupEncryption{Plaintext: true},
			Destination: v1alpha1.BackupDestination{Volume: &v1alpha1.BackupVolume{Folder: "weekly"}},
		},
	}
}

// TestRefusal checks that errors that the schema cannot find are reported with their field, and that a key that was set
// by mistake is not repeated.
func TestRefusal(t *testing.T) {
	for _, c := range []struct {
		field  string
		change func(*v1alpha1.BackupScheduleSpec)
	}{
		{"", func(*v1alpha1.BackupScheduleSpec) {}},
		{"spec.schedule", func(s *v1alpha1.BackupScheduleSpec) { s.Schedule = "61 * * * *" }},
		{"spec.timeZone", func(s *v1alpha1.BackupScheduleSpec) { s.TimeZone = "Mars/Olympus" }},
		{"spec.encryption.recipients[0]", func(s *v1alpha1.BackupScheduleSpec) { s.Encryption.Recipients = []string{"age1private"} }},
		{"spec.clusters.selector.matchExpressions[0].operator", func(s *v1alpha1.BackupScheduleSpec) {
			s.Clusters.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
		}},
	} {
		b := validSchedule()
		c.change(&b.Spec)
		wrong := invalidPart(b)
		switch {
		case wrong == nil && c.field != "":
			t.Errorf("refusal = nil, want an error of %s", c.field)
		case wrong != nil && (wrong.Field != c.field || strings.Contains(wrong.String(), "private")):
			t.Errorf("refusal for %s = %s", c.field, wrong)
		}
	}
}

func TestSpec(t *testing.T) {
	b := validSchedule()
	s, err := Spec(b)
	if err != nil || s.TimeZone != defaultZone || s.Destination.Folder != "weekly" || s.Generation != 3 || s.Timeout == 0 || s.StartingDeadline == 0 {
		t.Errorf("Spec = %+v, %v", s, err)
	}
	if id := v1alpha1.LogID(b); id != "fleet/nightly/01234567" {
		t.Error(id)
	}
	b.Spec.Clusters = v1alpha1.BackupSelection{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}}
	if s, err = Spec(b); err != nil || s.Selector != "tier=prod" || !s.BySelector {
		t.Errorf("Spec = %+v, %v", s, err)
	}
}

// TestConditions checks that Ready is False with the reason of the failure while attempts fail, and does not change
// during an attempt.
func TestConditions(t *testing.T) {
	ready := func(list []metav1.Condition) metav1.Condition {
		for _, c := range list {
			if c.Type == v1alpha1.ConditionReady {
				return c
			}
		}
		return metav1.Condition{}
	}
	failing := kstatus(nil, v1alpha1.BackupScheduleStatus{Phase: v1alpha1.BackupFailing, Message: "spec.destination.s3.credentialsSecretRef: refused", Next: "correct them"}, "CredentialsRefused", 3)
	if c := ready(failing); c.Status != metav1.ConditionFalse || c.Reason != "CredentialsRefused" || !strings.Contains(c.Message, "credentialsSecretRef") || !strings.Contains(c.Message, "correct them") {
		t.Errorf("Ready after a failure = %+v", c)
	}
	again := kstatus(failing, v1alpha1.BackupScheduleStatus{Phase: v1alpha1.BackupRunning}, "Running", 3)
	if c := ready(again); c.Status != metav1.ConditionFalse {
		t.Errorf("Ready during the next attempt = %+v", c)
	}
	if c := ready(kstatus(again, v1alpha1.BackupScheduleStatus{Phase: v1alpha1.BackupScheduled}, "Scheduled", 3)); c.Status != metav1.ConditionTrue {
		t.Errorf("Ready after a success = %+v", c)
	}
}
