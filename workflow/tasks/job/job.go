package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"scute.dev/internal/redact"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Kind runs a Kubernetes Job until it ends.
//
// If an interrupted attempt left an unfinished Job of this step, the next attempt waits for it, or
// deletes it if an operator has changed the inputs. After a failed Job it creates another one. An
// attempt that times out deletes its Job; a cancelled attempt keeps it for the next one. The undo
// deletes all Jobs of the step.
type Kind struct {
	Clusters *access.Clusters
}

// With are the inputs of Job: either an image and a command, or a whole template.
type With struct {
	// Image of the only container.
	Image string `json:"image,omitempty"`
	// Command and Args of the container; those of the image by default.
	Command []string `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	// Env of the container.
	Env []corev1.EnvVar `json:"env,omitempty"`
	// ServiceAccountName of the pod.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// Template is the spec of a Job (batch/v1 JobSpec). The restart policy is Never by default.
	Template *batchv1.JobSpec `json:"template,omitempty"`
	// Namespace of the Job; the run's by default.
	Namespace string `json:"namespace,omitempty"`
	// Cluster to run it on; the run's by default.
	Cluster access.ClusterRef `json:"cluster,omitzero"`
}

const (
	// jobLabel selects the Jobs of a step by a hash of its key.
	jobLabel = "scute.dev/step"
	// jobExecution is the annotation with the number of the execution that created a Job. Each
	// execution creates another Job.
	jobExecution = "scute.dev/execution"
	// jobInputs is the annotation with a hash of the inputs of a Job.
	jobInputs = "scute.dev/inputs"
	// cleanupTimeout limits the deletion of the Job of an attempt that timed out.
	cleanupTimeout = 10 * time.Second
)

// Validate checks the inputs. It rejects a Job that would be deleted soon after its end. Run does
// not check that, because the Job may exist already.
func (*Kind) Validate(with json.RawMessage) []workflow.Problem {
	if problems := check(with); len(problems) > 0 {
		return problems
	}
	w, problems := task.Decode[With](with)
	if w.Template == nil {
		return problems
	}
	if ttl := w.Template.TTLSecondsAfterFinished; ttl != nil && *ttl < access.MinTTL {
		problems.Add("template.ttlSecondsAfterFinished", "the Job could be deleted before the task reads its result, and would run again",
			fmt.Sprintf("use %d or more, or remove it", access.MinTTL))
	}
	return problems
}

func check(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[With](with)
	if len(problems) > 0 {
		return problems
	}
	if (w.Image == "") == (w.Template == nil) {
		problems.Add("image", "exactly one of image and template must be set", "set either image, with command and args, or template")
	}
	problems = append(problems, checkContainer("", &corev1.Container{Command: w.Command, Args: w.Args, Env: w.Env})...)
	if w.Template != nil {
		pod := &w.Template.Template.Spec
		for i := range pod.InitContainers {
			problems = append(problems, checkContainer(fmt.Sprintf("template.template.spec.initContainers[%d].", i), &pod.InitContainers[i])...)
		}
		for i := range pod.Containers {
			problems = append(problems, checkContainer(fmt.Sprintf("template.template.spec.containers[%d].", i), &pod.Containers[i])...)
		}
		if len(w.Command) > 0 || len(w.Args) > 0 || len(w.Env) > 0 || w.ServiceAccountName != "" {
			problems.Add("template", "command, args, env and serviceAccountName can only be set with image", "set them in the template")
		}
		if len(pod.Containers) == 0 {
			problems.Add("template.template.spec.containers", "it is empty", "add at least one container")
		}
		switch pod.RestartPolicy {
		case "", corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
		default:
			problems.Add("template.template.spec.restartPolicy", "a Job cannot have this restart policy", "use Never or OnFailure")
		}
	}
	return problems
}

func checkContainer(field string, c *corev1.Container) []workflow.Problem {
	var problems []workflow.Problem
	for i, env := range c.Env {
		if redact.IsSecretName(env.Name) && !publicValue.MatchString(env.Value) {
			problems = append(problems, task.SecretProblem(fmt.Sprintf("%senv[%d].value", field, i), env.Name+" contains a secret",
				"use valueFrom with a secretKeyRef"))
		}
	}
	return append(problems, task.CheckScripts(field+"command", c.Command, field+"args", c.Args, "pass it by env, and use the variable in quotes, \"$NAME\"")...)
}

// publicValue matches a value that is public whatever its name: a switch, or references to
// variables (which may come from Secrets) after an optional header scheme.
var publicValue = regexp.MustCompile(`(?i)^(yes|no|true|false|on|off|0|1|((bearer|basic) )?(\$\([^$()]+\))*)$`)

type record struct {
	Cluster   access.Pinned `json:"cluster,omitzero"`
	Namespace string        `json:"namespace"`
}

type output struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Succeeded int32  `json:"succeeded"`
}

// Run finds or creates the Job and waits for its end.
func (j *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	with, err := task.ReadInputs[With](c, check)
	if err != nil {
		return nil, err
	}
	namespace := cmp.Or(with.Namespace, c.Namespace)
	was, err := task.Recorded[record](c)
	if err != nil {
		return nil, err
	}
	cluster, pinned, err := j.Clusters.Pin(ctx, c, with.Cluster, was.Cluster, was.Namespace != "")
	if err != nil {
		return nil, err
	}
	if was.Namespace != "" && was.Namespace != namespace {
		return nil, task.Final(fmt.Errorf("with.namespace: it has changed, but an earlier attempt created Jobs in %s: restore it, or roll back the "+
			"task first", was.Namespace))
	}
	job, err := j.findUnfinished(ctx, c, cluster, namespace)
	if err != nil {
		return nil, err
	}
	if err := c.Prepare(ctx, record{Cluster: pinned, Namespace: namespace}, false); err != nil {
		return nil, err
	}
	if job == nil {
		if job, err = j.createJob(ctx, c, cluster, &with, namespace); err != nil {
			return nil, err
		}
	}
	job, err = j.waitEnd(ctx, c, cluster, access.RefOf(job))
	if err != nil {
		return nil, err
	}
	succeeded, _, _ := unstructured.NestedInt64(job.Object, "status", "succeeded")
	return json.Marshal(output{Namespace: namespace, Name: job.GetName(), UID: string(job.GetUID()), Succeeded: int32(succeeded)}) //nolint:gosec // a count of pods
}

// findUnfinished returns the Job of this execution that has not failed, or nil. It first waits
// until Jobs that are being deleted are gone, so that two Jobs never run at once.
func (j *Kind) findUnfinished(ctx context.Context, c *task.Call, cluster *access.Cluster, namespace string) (*unstructured.Unstructured, error) {
	jobs, err := cluster.List(ctx, stepJobs(c, namespace), namespace)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(jobs, func(a, b unstructured.Unstructured) int {
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time) // newest first
	})
	for i := range jobs {
		end, _ := access.JobEnd(&jobs[i])
		own := jobs[i].GetAnnotations()[jobExecution] == strconv.Itoa(c.Execution)
		made := jobs[i].GetAnnotations()[jobInputs] // "" for a Job of an earlier version
		switch {
		case access.StepKeyOf(&jobs[i]) != c.Key():
		case jobs[i].GetDeletionTimestamp() != nil, own && end != batchv1.JobFailed && made != "" && made != inputsHash(c):
			if err := cluster.Remove(ctx, c, access.RefOf(&jobs[i]), jobs[i].GetUID(), metav1.DeletePropagationForeground, true); err != nil {
				return nil, err
			}
		case own && end != batchv1.JobFailed:
			return &jobs[i], nil
		}
	}
	return nil, nil //nolint:nilnil // nil if there is none
}

// inputsHash returns a hash of the inputs. It does not depend on the version of scute or
// Kubernetes.
func inputsHash(c *task.Call) string { return task.Hash(string(c.With)) }

func stepJobs(c *task.Call, namespace string) *access.ObjectSelector {
	return &access.ObjectSelector{APIVersion: "batch/v1", Kind: "Job", Namespace: namespace, LabelSelector: jobLabel + "=" + task.Hash(c.Key())}
}

// createJob creates a Job. The Job's name depends only on the step and the attempt, so that an
// interrupted creation does not lead to a second Job.
func (j *Kind) createJob(ctx context.Context, c *task.Call, cluster *access.Cluster, with *With, namespace string) (*unstructured.Unstructured, error) {
	ref := access.ObjectRef{APIVersion: "batch/v1", Kind: "Job", Namespace: namespace, Name: jobName(c)}
	job := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: ref.APIVersion, Kind: ref.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: ref.Name,
			Labels:      map[string]string{jobLabel: task.Hash(c.Key())},
			Annotations: map[string]string{access.StepKeyAnnotation: c.Key(), jobExecution: strconv.Itoa(c.Execution), jobInputs: inputsHash(c)},
		},
		Spec: *with.spec(),
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return nil, task.Final(fmt.Errorf("with: %w", err))
	}
	u := &unstructured.Unstructured{Object: object}
	delete(u.Object, "status")
	if old, err := cluster.Find(ctx, ref); err != nil {
		return nil, access.FinalIfObjectRefused(ref, err)
	} else if old != nil && access.StepKeyOf(old) == c.Key() { // created for an earlier failure
		if err := cluster.Remove(ctx, c, ref, old.GetUID(), metav1.DeletePropagationForeground, true); err != nil {
			return nil, err
		}
	} else if old != nil {
		return nil, task.Final(fmt.Errorf("%s exists and was not created by this task: delete it", ref))
	}
	if err := cluster.Create(ctx, ref, u); err != nil {
		return nil, err
	}
	if access.StepKeyOf(u) != c.Key() {
		return nil, task.Final(fmt.Errorf("%s exists and was not created by this task: delete it", ref))
	}
	return u, nil
}

func (w *With) spec() *batchv1.JobSpec {
	spec := w.Template.DeepCopy()
	if spec == nil {
		spec = &batchv1.JobSpec{BackoffLimit: new(int32(0))} // the task's retry creates another Job
		spec.Template.Spec = corev1.PodSpec{
			ServiceAccountName: w.ServiceAccountName,
			Containers:         []corev1.Container{{Name: "task", Image: w.Image, Command: w.Command, Args: w.Args, Env: w.Env}},
		}
	}
	if spec.Template.Spec.RestartPolicy == "" {
		spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	return spec
}

// jobName returns TASK-HASH-ATTEMPT, short enough for the names of the Job's pods.
func jobName(c *task.Call) string {
	const looked = 150
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '-'
		}
	}, c.Task[max(0, len(c.Task)-looked):]), "-")
	const longest = 30
	name = strings.TrimRight(name[:min(len(name), longest)], "-")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "task-" + name
	}
	return fmt.Sprintf("%s-%s-%d", name, task.Hash(c.Key())[:10], c.Attempt)
}

func (j *Kind) waitEnd(ctx context.Context, c *task.Call, cluster *access.Cluster, ref access.ObjectRef) (job *unstructured.Unstructured, err error) {
	var failed, pod string
	var asked time.Time
	c.YieldSlot()
	err = access.Poll(ctx, c, func(ctx context.Context) (string, error) {
		u, err := cluster.Find(ctx, ref)
		if err != nil {
			return "", access.FinalIfObjectRefused(ref, err)
		}
		if u == nil || u.GetDeletionTimestamp() != nil {
			return "", access.FailedObject(fmt.Errorf("%s was deleted before it ended", ref))
		}
		job = u
		end, why := access.JobEnd(u)
		switch end {
		case batchv1.JobComplete:
			return "", nil
		case batchv1.JobFailed:
			failed = cmp.Or(why, "no reason given")
			return "", nil
		}
		if time.Since(asked) >= podInterval {
			if pod = podSummary(ctx, cluster, ref); pod != "" {
				asked = time.Now()
			}
		}
		return fmt.Sprintf("%s is running: %s%s", ref, access.JobPods(u), pod), nil
	})
	switch {
	case err != nil:
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && job != nil {
			j.abandon(ctx, c, cluster, job)
		}
		return nil, fmt.Errorf("waiting for %s: %w", ref, err)
	case failed != "":
		said := podLogs(ctx, cluster, c, ref, j.Clusters.Local)
		return nil, fmt.Errorf("%s has failed: %s%s", ref, failed, said)
	}
	return job, nil
}

// abandon deletes a Job that timed out, so that the next attempt does not wait for it.
func (j *Kind) abandon(ctx context.Context, c *task.Call, cluster *access.Cluster, job *unstructured.Unstructured) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	err := cluster.Remove(ctx, c, access.RefOf(job), job.GetUID(), metav1.DeletePropagationForeground, false)
	if err != nil && c.Logger != nil {
		c.Logger.Warn("a Job that timed out could not be deleted", "job", access.RefOf(job).String(), "error", err)
	}
}

// Undo deletes all Jobs of the step, with their pods, and waits until they are gone.
func (j *Kind) Undo(ctx context.Context, c *task.Call) error {
	record, err := task.Recorded[record](c)
	if err != nil || len(c.Undo) == 0 {
		return err
	}
	cluster, err := j.Clusters.OpenPinned(ctx, c, record.Cluster)
	if err != nil {
		return err
	}
	jobs, err := cluster.List(ctx, stepJobs(c, record.Namespace), record.Namespace)
	if err != nil {
		return err
	}
	for i := range jobs {
		if access.StepKeyOf(&jobs[i]) != c.Key() {
			continue
		}
		if err := cluster.Remove(ctx, c, access.RefOf(&jobs[i]), jobs[i].GetUID(), metav1.DeletePropagationForeground, true); err != nil {
			return err
		}
	}
	return nil
}
