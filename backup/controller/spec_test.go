package controller

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
)

func good() *v1alpha1.BackupSchedule {
	return &v1alpha1.BackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "nightly", UID: "0123456789", Generation: 3},
		Spec: v1alpha1.BackupScheduleSpec{
			Schedule: "@daily", Clusters: v1alpha1.BackupSelection{All: true}, Encryption: v1alpha1.BackupEncryption{Plaintext: true},
			Destination: v1alpha1.BackupDestination{Volume: &v1alpha1.BackupVolume{Folder: "weekly"}},
		},
	}
}

// TestRefusal: what the schema does not know to be wrong is refused by its field; a key that was given by mistake is not repeated.
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
		b := good()
		c.change(&b.Spec)
		wrong := refusal(b)
		switch {
		case wrong == nil && c.field != "":
			t.Errorf("%s is not refused", c.field)
		case wrong != nil && (wrong.Field != c.field || strings.Contains(wrong.String(), "private")):
			t.Errorf("%s: %s", c.field, wrong)
		}
	}
}

func TestSpec(t *testing.T) {
	b := good()
	s, err := Spec(b)
	if err != nil || s.TimeZone != defaultZone || s.Destination.Folder != "weekly" || s.Generation != 3 || s.Timeout == 0 || s.StartingDeadline == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if id := v1alpha1.LogID(b); id != "fleet/nightly/01234567" {
		t.Error(id)
	}
	b.Spec.Clusters = v1alpha1.BackupSelection{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}}
	if s, err = Spec(b); err != nil || s.Selector != "tier=prod" || !s.BySelector {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestConditions: Ready is False while attempts fail, with the reason of the failure, and stays what it was while one is made.
func TestConditions(t *testing.T) {
	ready := func(list []metav1.Condition) metav1.Condition {
		for _, c := range list {
			if c.Type == v1alpha1.ConditionReady {
				return c
			}
		}
		return metav1.Condition{}
	}
	failing := said(nil, v1alpha1.BackupScheduleStatus{Phase: v1alpha1.BackupFailing, Message: "spec.destination.s3.credentialsSecretRef: refused", Next: "correct them"}, "CredentialsRefused", 3)
	if c := ready(failing); c.Status != metav1.ConditionFalse || c.Reason != "CredentialsRefused" || !strings.Contains(c.Message, "credentialsSecretRef") || !strings.Contains(c.Message, "correct them") {
		t.Errorf("%+v", c)
	}
	again := said(failing, v1alpha1.BackupScheduleStatus{Phase: v1alpha1.BackupRunning}, "Running", 3)
	if c := ready(again); c.Status != metav1.ConditionFalse {
		t.Errorf("while it is tried again: %+v", c)
	}
	if c := ready(said(again, v1alpha1.BackupScheduleStatus{Phase: v1alpha1.BackupScheduled}, "Scheduled", 3)); c.Status != metav1.ConditionTrue {
		t.Errorf("after a success: %+v", c)
	}
}
