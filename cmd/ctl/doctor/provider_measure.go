package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/pause"
	"scute.dev/kube"
	"scute.dev/view"
)

const (
	// providerReason is the reason of the Pauses that these checks create. It identifies them.
	providerReason = "scutectl doctor provider"
	// daemonGracePeriod is added to the timeout of the objects, because the daemon needs time, too.
	daemonGracePeriod = time.Minute
)

type providerCheck struct {
	*providerOptions
	cluster *connect.Cluster
	kube    *kube.Cluster
	pauses  kit.Source[*v1alpha1.Pause]
	key     types.NamespacedName
}

func newCheck(o *providerOptions) (*providerCheck, error) {
	cluster, err := o.Flags.Cluster()
	if err != nil {
		return nil, err
	}
	k, err := kube.Connect("cluster", cluster.Config)
	if err != nil {
		return nil, cluster.Explain(err)
	}
	return &providerCheck{
		providerOptions: o, cluster: cluster, kube: k, pauses: pause.InCluster(cluster, o.ReportBroken),
		key: types.NamespacedName{Namespace: cluster.Namespace, Name: "doctor-provider." + o.name},
	}, nil
}

// survey reads the kinds of the cluster's objects. With --yes, it first deletes the Pause that an
// earlier check left behind.
func (c *providerCheck) survey(ctx context.Context) (*providerReport, error) {
	report := &providerReport{Cluster: c.name, Namespace: c.cluster.Namespace}
	left, err := c.pauses.Get(ctx, c.key)
	switch {
	case errors.Is(err, kit.ErrNotFound):
	case err != nil:
		return nil, err
	case left.Spec.Reason != providerReason:
		return nil, fmt.Errorf("pause %s exists, and no check created it: delete it", c.key)
	case c.dryRun || !c.yes:
		return nil, fmt.Errorf("pause %s exists: an earlier check was killed and left it, or is still in progress; with --yes it is deleted first", c.key)
	default:
		c.Env.Notef("An earlier check left Pause %s: deleting it first.", c.key)
		if err := c.release(ctx, left); err != nil {
			return nil, err
		}
	}
	below, err := c.objects(ctx)
	if err != nil {
		return nil, err
	}
	report.Kinds = survey(below)
	return report, checkNotPaused(below, c.cluster.Namespace, c.name)
}

// measure pauses the cluster, resumes it, and sets the verdicts of the kinds. It deletes the Pause
// in any case.
func (c *providerCheck) measure(ctx context.Context, report *providerReport) error {
	limit := &v1alpha1.Duration{Duration: c.timeout}
	made := &v1alpha1.Pause{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: c.key.Name},
		Spec:       v1alpha1.PauseSpec{Clusters: []string{c.name}, Reason: providerReason, Timeouts: v1alpha1.PauseTimeouts{Acknowledge: limit, Resume: limit}},
	}
	if err := c.cluster.Client.Create(ctx, made); err != nil {
		return fmt.Errorf("creating the Pause: %w", c.cluster.Explain(err))
	}
	status, err := c.waitForAnswers(ctx)
	if err != nil {
		return errors.Join(err, c.remove(context.WithoutCancel(ctx), made))
	}
	report.Measured, report.TimeoutSeconds = true, c.timeout.Seconds()
	report.Kinds = judge(report.Kinds, status, c.ignore)
	began := c.Env.Now()
	if err := c.release(ctx, made); err != nil {
		return errors.Join(err, c.remove(context.WithoutCancel(ctx), made))
	}
	report.ResumeSeconds = c.Env.Now().Sub(began).Seconds()
	below, err := c.objects(ctx)
	if err != nil {
		return err
	}
	report.Kinds, report.Passed = checkResumed(report.Kinds, below), true
	for _, k := range report.Kinds {
		report.Passed = report.Passed && k.Passed
	}
	return nil
}

// waitForAnswers waits until every object has acknowledged, or one has timed out.
func (c *providerCheck) waitForAnswers(ctx context.Context) (status v1alpha1.PauseStatus, err error) {
	err = c.follow(ctx, func(p *v1alpha1.Pause) bool {
		status = p.Status
		return p.Status.Phase == v1alpha1.PauseAcknowledged || p.Status.Phase == v1alpha1.PauseTimedOut
	})
	switch {
	case err == nil:
		return status, nil
	case errors.Is(err, context.DeadlineExceeded) && status.Phase == "":
		return status, fmt.Errorf("no daemon has acted on the Pause within %s: %s checks whether one runs", view.Duration(c.timeout+daemonGracePeriod), c.Hint("", "doctor"))
	case errors.Is(err, context.DeadlineExceeded):
		return status, fmt.Errorf("the cluster could not be paused within %s: %s; %s", view.Duration(c.timeout+daemonGracePeriod), status.Message, status.Next)
	default:
		return status, err
	}
}

// release deletes the Pause and waits until the daemon has restored the cluster.
func (c *providerCheck) release(ctx context.Context, made *v1alpha1.Pause) error {
	if err := c.remove(ctx, made); err != nil {
		return err
	}
	var last v1alpha1.PauseStatus
	err := c.follow(ctx, func(p *v1alpha1.Pause) bool {
		last = p.Status
		return p.UID != made.UID
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("pause %s is deleted, but its cluster was not restored within %s: %s; %s", c.key, view.Duration(c.timeout+daemonGracePeriod), last.Message, last.Next)
	}
	if errors.Is(err, kit.ErrNotFound) {
		return nil
	}
	return err
}

func (c *providerCheck) remove(ctx context.Context, made *v1alpha1.Pause) error {
	err := c.cluster.Client.Delete(ctx, made, client.Preconditions{UID: &made.UID})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("deleting Pause %s: %w; delete it by hand, which restores the cluster", c.key, c.cluster.Explain(err))
}

// follow watches the Pause until fn returns true or the timeout ends.
func (c *providerCheck) follow(ctx context.Context, fn func(*v1alpha1.Pause) bool) error {
	progress := c.Env.Progress()
	defer progress.Done()
	waiting, cancel := context.WithTimeout(ctx, c.timeout+daemonGracePeriod)
	defer cancel()
	err := c.pauses.Watch(waiting, c.key, func(p *v1alpha1.Pause) bool {
		progress.Showf("%s: %s", p.Status.Phase, p.Status.Message)
		return fn(p)
	})
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(fmt.Errorf("interrupted: Pause %s is deleted, and scuted restores the cluster", c.key))
	case waiting.Err() != nil:
		return waiting.Err()
	default:
		return err
	}
}
