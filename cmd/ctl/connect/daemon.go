package connect

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// daemonLabel and daemonComponent select the daemon's pods, whose names depend on the chart's values.
const (
	daemonLabel     = "scute.dev/component"
	daemonComponent = "daemon"
)

// Daemons lists the daemon's pods.
func (f *Flags) Daemons(ctx context.Context, c *Cluster) ([]corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(f.ScuteNamespace), client.MatchingLabels{daemonLabel: daemonComponent}); err != nil {
		return nil, fmt.Errorf("looking for the daemon's pod in namespace %s: %w", f.ScuteNamespace, c.Explain(err))
	}
	return pods.Items, nil
}

// daemon returns a running pod of the daemon, preferably a ready one.
func (f *Flags) daemon(ctx context.Context, c *Cluster) (*corev1.Pod, error) {
	pods, err := f.Daemons(ctx, c)
	if err != nil {
		return nil, err
	}
	var found *corev1.Pod
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		if found == nil || Ready(p) {
			found = p
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no pod of scute runs in namespace %s: set --scute-namespace if it is installed elsewhere. "+
			"If the daemon runs outside the cluster, name its log with --log or --nats", f.ScuteNamespace)
	}
	return found, nil
}

// Ready reports whether a pod is ready.
func Ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
