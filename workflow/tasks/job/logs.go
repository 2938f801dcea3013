package job

import (
	"context"
	"fmt"
	"io"
	"os"
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
	podLogsWithin = 20 * time.Second
	podLogsPods   = 5
	podLogsBytes  = int64(64 << 10)
)

// podLogs keeps the ends of the logs of a Job's pods in the folder of a local run, and returns the last lines for a message. That
// they cannot be read is said, and is no error: the Job's failure is what counts. The daemon's own folder has the log beside it, which
// needs the room, and is out of its users' reach.
func podLogs(ctx context.Context, cl *access.Cluster, c *task.Call, ref access.ObjectRef, local bool) string {
	ctx, cancel := context.WithTimeout(ctx, podLogsWithin)
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
		return "; its pods said: " + said
	case err != nil:
		return "; the logs of its pods cannot be read: " + redact.Tail(err.Error())
	default:
		return "; its pods left no logs"
	}
}

func readPodLogs(ctx context.Context, cl *access.Cluster, ref access.ObjectRef) (string, error) {
	clients, err := corev1client.NewForConfig(cl.Config)
	if err != nil {
		return "", fmt.Errorf("preparing to read logs: %w", err)
	}
	pods, err := clients.Pods(ref.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + ref.Name, Limit: podLogsPods})
	if err != nil {
		return "", err
	}
	var all strings.Builder
	var failed error
	containers := 0
	for i := range pods.Items {
		containers += len(pods.Items[i].Spec.Containers)
	}
	share, lines := podLogsBytes/int64(max(1, containers)), int64(1000)
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, container := range pod.Spec.Containers {
			stream, err := clients.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, TailLines: &lines}).Stream(ctx)
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
