package transfer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

func TestDriftNamesWhatChangedCameOrWent(t *testing.T) {
	ref := func(kind, name string) object.Ref { return object.Ref{Kind: kind, Namespace: "n", Name: name} }
	plan := []mover.Item{
		{Ref: ref("Machine", "same"), UID: "1", Hash: "h", ResourceVersion: "1"},
		{Ref: ref("Machine", "written"), UID: "2", Hash: "h"},
		{Ref: ref("Machine", "replaced"), UID: "3", Hash: "h"},
		{Ref: ref("Machine", "gone"), UID: "4", Hash: "h"},
		{Ref: ref("Secret", "rotated"), UID: "5", ResourceVersion: "1"},
		{Ref: ref("Template", "kept"), UID: "6", Hash: "h", Keep: "it stays"},
	}
	now := []mover.Item{
		{Ref: ref("Machine", "same"), UID: "1", Hash: "h", ResourceVersion: "2"}, // its status was written
		{Ref: ref("Machine", "written"), UID: "2", Hash: "other"},
		{Ref: ref("Machine", "replaced"), UID: "33", Hash: "h"},
		{Ref: ref("Machine", "new"), UID: "7", Hash: "h"},
		{Ref: ref("Secret", "rotated"), UID: "5", ResourceVersion: "2"},
		{Ref: ref("Template", "kept"), UID: "6", Hash: "other", Keep: "it stays"},
	}
	got := make(map[string]string)
	for _, w := range drift(plan, now) {
		got[w.Ref.Name] = w.Why
	}
	want := map[string]string{
		"written":  "it changed at the source after the plan was made",
		"replaced": "it was deleted at the source, and another object of its name was made",
		"new":      "it appeared at the source after the plan was made",
		"gone":     "it went away at the source after the plan was made",
		"rotated":  "it changed at the source after the plan was made",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
