package kinds

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/workflow/tasks/deletion"
	"scute.dev/workflow/tasks/wait"
)

func remove(t *testing.T, namespace, with string) *step {
	t.Helper()
	return &step{t: t, kind: &deletion.Kind{Clusters: clusters(true)}, namespace: namespace, name: "delete", with: with}
}

// TestDelete checks that recorded objects are deleted, and recreated with their owners by the undo. A Secret cannot be
// recreated, which is reported.
func TestDelete(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "delete")
	owner := configMap(ns, "owner", map[string]string{"a": "one"})
	harness.Must(t, admin().Create(ctx, owner))
	owned := configMap(ns, "owned", nil)
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	harness.Must(t, admin().Create(ctx, owned))
	harness.Must(t, admin().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s"}, StringData: map[string]string{"k": "c4n4ry"}}))

	s := remove(t, ns, `{"objects": [
		{"apiVersion": "v1", "kind": "ConfigMap", "name": "owned"},
		{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"},
		{"apiVersion": "v1", "kind": "ConfigMap", "name": "never"},
		{"apiVersion": "example.com/v1", "kind": "Nothing", "name": "never"},
		{"apiVersion": "v1", "kind": "Secret", "name": "s"}]}`)
	s.die = true
	if s.run(ctx) == nil {
		t.Fatal("the attempt did not crash")
	}
	if getMap(ctx, t, ns, "owner") == nil {
		t.Fatal("the object was deleted before the record")
	}
	harness.Must(t, s.run(ctx))
	harness.Must(t, s.run(ctx)) // nothing remains to be done
	for _, name := range []string{"owner", "owned"} {
		if u := getMap(ctx, t, ns, name); u != nil {
			t.Errorf("%s still exists", name)
		}
	}
	if strings.Contains(string(s.undo), "c4n4ry") || strings.Contains(string(s.undo), "YzRuNHJ5") {
		t.Errorf("the record contains the secret: %s", s.undo)
	}
	for range 2 {
		isFinal(t, s.takeBack(ctx), "Secret delete/s was deleted and cannot be created again", "never recorded")
	}
	again, dependent := getMap(ctx, t, ns, "owner"), getMap(ctx, t, ns, "owned")
	if again == nil || data(again, "a") != "one" || dependent == nil {
		t.Fatalf("objects after the undo = %v, %v, want both recreated", again, dependent)
	}
	if refs := dependent.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != again.GetUID() {
		t.Errorf("owners = %v, want the new UID %s", refs, again.GetUID())
	}
}

// TestDeleteCorrected checks an attempt that recorded an object but did not delete it, before an operator corrects the
// inputs to another one. The first object is kept.
func TestDeleteCorrected(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "delete-corrected")
	for _, name := range []string{"wrong", "right"} {
		harness.Must(t, admin().Create(ctx, configMap(ns, name, nil)))
	}
	s := remove(t, ns, `{"objects": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "wrong"}]}`)
	s.die = true
	if s.run(ctx) == nil {
		t.Fatal("the attempt did not crash")
	}
	s.with = strings.ReplaceAll(s.with, "wrong", "right")
	harness.Must(t, s.run(ctx))
	if getMap(ctx, t, ns, "wrong") == nil || getMap(ctx, t, ns, "right") != nil {
		t.Error("the wrong object was deleted")
	}
	if out := string(s.output); strings.Contains(out, "wrong") || !strings.Contains(out, "right") {
		t.Errorf("output = %s, want only right", out)
	}
	harness.Must(t, s.run(ctx))
	if out := string(s.output); !strings.Contains(out, "right") {
		t.Errorf("output = %s, want the object that an earlier attempt deleted", out)
	}
	harness.Must(t, s.takeBack(ctx))
	if getMap(ctx, t, ns, "right") == nil {
		t.Error("right was not recreated by the undo")
	}
}

// TestDeleteInterrupted checks an attempt that deletes an object and crashes while it waits. Another client recreates
// the object. The next attempt keeps the new object. A later execution of the task deletes it.
func TestDeleteInterrupted(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "delete-interrupted")
	held := configMap(ns, "c", nil)
	held.Finalizers = []string{"example.com/hold"}
	harness.Must(t, admin().Create(ctx, held))
	s := remove(t, ns, `{"objects": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}]}`)
	attempt, die := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.run(attempt) }()
	s.saw(ctx, "ConfigMap delete-interrupted/c is being deleted and waits for finalizers: example.com/hold")
	die()
	if <-ended == nil {
		t.Fatal("the attempt did not wait")
	}
	harness.Must(t, admin().Patch(ctx, configMap(ns, "c", nil), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	theirs := configMap(ns, "c", map[string]string{"a": "theirs"})
	harness.Must(t, admin().Create(ctx, theirs))
	harness.Must(t, s.run(ctx))
	if u := getMap(ctx, t, ns, "c"); u == nil || u.GetUID() != theirs.UID || u.GetDeletionTimestamp() != nil {
		t.Fatalf("another client's new object was deleted: %v", u)
	}
	harness.Must(t, s.run(ctx))
	if getMap(ctx, t, ns, "c") != nil {
		t.Error("a later execution did not delete the object")
	}
}

// TestDeleteWaits checks that Delete waits for finalizers without a worker, and keeps an object that was recreated with
// the same name.
func TestDeleteWaits(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "delete-waits")
	held := configMap(ns, "held", nil)
	held.Labels, held.Finalizers = map[string]string{"app": "old"}, []string{"example.com/hold"}
	harness.Must(t, admin().Create(ctx, held))
	harness.Must(t, admin().Create(ctx, configMap(ns, "unlabelled", nil)))

	s := remove(t, ns, `{"selector": {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "app=old"}}`)
	attempt, die := context.WithCancel(ctx)
	defer die()
	ended := make(chan error, 1)
	for _, attempt := range []context.Context{attempt, ctx} {
		s.says, s.waits = nil, false
		go func() { ended <- s.run(attempt) }()
		eventually(ctx, t, "it only waits", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.waits && slices.Contains(s.says, "ConfigMap delete-waits/held is being deleted and waits for finalizers: example.com/hold")
		})
		if attempt != ctx {
			die()
			if <-ended == nil {
				t.Fatal("the attempt did not wait")
			}
		}
	}
	harness.Must(t, admin().Patch(ctx, configMap(ns, "held", nil), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	harness.Must(t, <-ended)
	if getMap(ctx, t, ns, "held") != nil || getMap(ctx, t, ns, "unlabelled") == nil {
		t.Error("the wrong objects were deleted")
	}
	theirs := configMap(ns, "held", map[string]string{"a": "theirs"})
	harness.Must(t, admin().Create(ctx, theirs))
	harness.Must(t, s.takeBack(ctx))
	if u := getMap(ctx, t, ns, "held"); u == nil || u.GetUID() != theirs.UID || data(u, "a") != "theirs" {
		t.Errorf("the undo changed another client's object: %v", u)
	}

	nothing := remove(t, ns, `{"selector": {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "app=none"}}`)
	harness.Must(t, nothing.run(ctx))
	if !nothing.adopted {
		t.Error("not recorded as adopted, although nothing was deleted")
	}
}

func TestDeleteForbidden(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "delete-forbidden")
	s := remove(t, ns, `{"objects": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}]}`)
	s.kind, s.account = &deletion.Kind{Clusters: clusters(false)}, "nobody"
	isFinal(t, s.run(ctx), "system:serviceaccount:delete-forbidden:nobody")
}

func waitStep(t *testing.T, namespace, with string) *step {
	t.Helper()
	return &step{t: t, kind: &wait.Kind{Clusters: clusters(true)}, namespace: namespace, name: "wait", with: with}
}

// TestWait checks each condition of Wait without the object, with an object that does not satisfy it, and with one that
// does.
func TestWait(t *testing.T) {
	ctx := harness.Deadline(t, 2*time.Minute)
	ns := namespace(ctx, t, "wait")
	const object = `"object": {"apiVersion": "batch/v1", "kind": "Job", "name": "j"}`
	for name, c := range map[string]struct{ with, says string }{
		"condition": {`"for": {"condition": {"type": "Complete"}}`, "has no condition Complete"},
		"cel":       {`"for": {"cel": "object.status.succeeded == 1 && object.metadata.name.startsWith('j')"}`, "no such key: succeeded"},
		"ready":     {`"for": "ready"`, "is not complete: 0 pods active, 0 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := waitStep(t, ns, "{"+object+", "+c.with+"}")
			ended := make(chan error, 1)
			go func() { ended <- s.run(ctx) }()
			s.saw(ctx, "Job.batch wait/j does not exist")
			makeJob(ctx, t, ns, "j")
			s.saw(ctx, c.says)
			endJob(ctx, t, ns, "j", "Complete")
			harness.Must(t, <-ended)
			if !strings.Contains(string(s.output), `"name":"j"`) {
				t.Errorf("output = %s, want the Job's name", s.output)
			}
			gone := waitStep(t, ns, "{"+object+`, "for": "gone"}`)
			go func() { ended <- gone.run(ctx) }()
			gone.saw(ctx, "still exists")
			harness.Must(t, admin().Delete(ctx, get(ctx, t, "batch/v1", "Job", ns, "j"), client.PropagationPolicy(metav1.DeletePropagationBackground)))
			harness.Must(t, <-ended)
		})
	}
	t.Run("count", func(t *testing.T) {
		s := waitStep(t, ns, `{"selector": {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "app=w"}, "for": "ready", "count": 2}`)
		ended := make(chan error, 1)
		go func() { ended <- s.run(ctx) }()
		for i, name := range []string{"a", "b"} {
			s.saw(ctx, []string{"0 of 2", "1 of 2"}[i])
			c := configMap(ns, name, nil)
			c.Labels = map[string]string{"app": "w"}
			harness.Must(t, admin().Create(ctx, c))
		}
		harness.Must(t, <-ended)
	})
	t.Run("failed", func(t *testing.T) {
		makeJob(ctx, t, ns, "f")
		endJob(ctx, t, ns, "f", "Failed")
		mentions(t, waitStep(t, ns, `{"object": {"apiVersion": "batch/v1", "kind": "Job", "name": "f"}, "for": "ready"}`).run(ctx), "Job.batch wait/f has failed")
	})
	t.Run("timeout", func(t *testing.T) {
		s, ended, late := waitStep(t, ns, `{"object": {"apiVersion": "example.com/v1", "kind": "Nothing", "name": "n"}, "for": "ready"}`), make(chan error, 1), expires(ctx)
		go func() { ended <- s.run(late) }()
		s.saw(ctx, "Nothing.example.com n does not exist")
		close(late.over)
		mentions(t, <-ended, "Nothing.example.com n does not exist", context.DeadlineExceeded.Error())
	})
	t.Run("not valid", func(t *testing.T) {
		for with, says := range map[string]string{
			`{"object": {"apiVersion": "v1", "kind": "Node", "name": "n"}, "for": {"cel": "object.("}}`:                    "for.cel",
			`{"object": {"apiVersion": "v1", "kind": "Node", "name": "n"}, "for": {"cel": "'a'"}}`:                         "not true or false",
			`{"object": {"apiVersion": "v1", "kind": "Node", "name": "n"}, "for": "done"}`:                                 `"done" is unknown`,
			`{"object": {"apiVersion": "v1", "kind": "Node", "name": "n"}}`:                                                "for: it must have exactly one condition",
			`{"object": {"apiVersion": "v1", "kind": "Node"}, "for": "gone"}`:                                              "object.name",
			`{"for": "gone", "selector": {"apiVersion": "v1", "kind": "Node", "labelSelector": ""}}`:                       "would select everything",
			`{"object": {"apiVersion": "v1", "kind": "Node", "name": "n"}, "for": "gone", "until": "x"}`:                   `unknown field "until"`,
			`{"object": {"apiVersion": "v1", "kind": "Node", "name": "n"}, "for": {"condition": {"type": "A", "x": "1"}}}`: `unknown field "x"`,
		} {
			problems := (&wait.Kind{}).Validate(json.RawMessage(with))
			if len(problems) == 0 || !strings.Contains(problems[0].String(), says) {
				t.Errorf("Validate(%s) = %v, want %q", with, problems, says)
			}
		}
	})
}
