package job

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"scute.dev/internal/redact"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

const (
	podLogsTimeout = 20 * time.Second
	podLogsMaxPods = 5
	podLogsBytes   = int64(64 << 10)
	// podInterval is how often a running Job's pod is read. The result is written to the event log.
	podInterval = 30 * time.Second
)

// podLogs returns the last lines of the logs of a Job's pods, or why they cannot be read. A local
// run also saves the logs to a file. The daemon does not: its users could not read the file, and it
// would be on the same volume as the event log.
func podLogs(ctx context.Context, cl *access.Cluster, c *task.Call, ref access.ObjectRef, local bool) string {
	ctx, cancel := context.WithTimeout(ctx, podLogsTimeout)
	defer cancel()
	text, err := readPodLogs(ctx, cl, ref)
	if local && c.Dir != "" && text != "" {
		kept := os.MkdirAll(c.Dir, 0o700)
		if kept == nil {
			kept = os.WriteFile(c.LogPath("-pods"), []byte(text), 0o600)
		}
		if kept != nil && c.Logger != nil {
			c.Logger.Warn("the logs of a Job's pods could not be saved", "job", ref.String(), "error", kept)
		}
	}
	said := redact.Tail(text)
	switch {
	case said != "":
		return "; logs of its pods: " + said
	case err != nil:
		return "; the logs of its pods cannot be read: " + redact.Tail(err.Error())
	default:
		return "; its pods have no logs"
	}
}

// podSummary describes the newest pod and the last line of its log. It omits parts that the run may
// not read.
func podSummary(ctx context.Context, cl *access.Cluster, ref access.ObjectRef) string {
	clients, err := corev1client.NewForConfig(cl.Config)
	if err != nil {
		return ""
	}
	const limit = 100
	list, err := clients.Pods(ref.Namespace).List(ctx, metav1.ListOptions{LabelSelector: jobSelector(ref), Limit: limit})
	switch {
	case err != nil:
		return "; its pods cannot be listed"
	case len(list.Items) == 0:
		return ""
	}
	pod := slices.MaxFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	text := fmt.Sprintf("; pod %s is %s", pod.Name, pod.Status.Phase)
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason != "" {
			text += ", " + s.Name + " is waiting: " + w.Reason
		}
	}
	if len(pod.Spec.Containers) == 0 || pod.Status.Phase == corev1.PodPending {
		return text
	}
	line, err := clients.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: pod.Spec.Containers[0].Name, TailLines: new(int64(1)), LimitBytes: new(int64(4 << 10))}).DoRaw(ctx)
	if said := strings.TrimSpace(string(line)); err == nil && said != "" {
		text += ": " + redact.Tail(said)
	}
	return text
}

func jobSelector(ref access.ObjectRef) string { return "batch.kubernetes.io/job-name=" + ref.Name }

func readPodLogs(ctx context.Context, cl *access.Cluster, ref access.ObjectRef) (string, error) {
	clients, err := corev1client.NewForConfig(cl.Config)
	if err != nil {
		return "", fmt.Errorf("preparing to read logs: %w", err)
	}
	pods, err := clients.Pods(ref.Namespace).List(ctx, metav1.ListOptions{LabelSelector: jobSelector(ref), Limit: podLogsMaxPods})
	if err != nil {
		return "", err
	}
	var all strings.Builder
	var failed error
	containers := 0
	for i := range pods.Items {
		containers += len(pods.Items[i].Spec.Containers)
	}
	share := podLogsBytes / int64(max(1, containers))
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, container := range pod.Spec.Containers {
			stream, err := clients.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, TailLines: new(int64(1000))}).Stream(ctx)
			if err != nil {
				failed = err
				continue
			}
			text, err := io.ReadAll(io.LimitReader(stream, 16*podLogsBytes))
			stream.Close()
			if err != nil {
				failed = err
			}
			if over := int64(len(text)) - share; over > 0 {
				text = text[over:]
			}
			fmt.Fprintf(&all, "--- %s/%s\n%s\n", pod.Name, container.Name, text)
		}
	}
	return all.String(), failed
}
