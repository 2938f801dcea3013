package diagnose

import (
	"context"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/internal/redact"
	"scute.dev/kube"
	"scute.dev/kube/object"
)

func (e *evidence) collectPods(ctx context.Context, namespace string) {
	pods, err := corev1client.NewForConfig(e.cluster.Config)
	if err != nil {
		e.addError("logs", err)
		return
	}
	taken := 0
	err = kube.EachPage("list pods", func(o metav1.ListOptions) (string, error) {
		list := &corev1.PodList{}
		err := e.cluster.Kube.Do(ctx, "list pods", func(ctx context.Context) error {
			return e.cluster.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(o.Limit), client.Continue(o.Continue))
		})
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if isPodHealthy(pod) {
				continue
			}
			if taken++; taken > diagnosePods {
				e.omitted++
				continue
			}
			e.collectPod(ctx, pods, pod)
		}
		return list.Continue, nil
	})
	if err != nil {
		e.addError("pods", err)
	}
}

func (e *evidence) collectPod(ctx context.Context, pods corev1client.PodsGetter, pod *corev1.Pod) {
	if u, err := e.cluster.Get(ctx, object.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}); err == nil {
		e.addObject(u)
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		e.collectLog(ctx, pods, pod, status.Name, false)
		if status.RestartCount > 0 {
			e.collectLog(ctx, pods, pod, status.Name, true)
		}
	}
}

func isPodHealthy(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}) && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 })
}

func (e *evidence) collectLog(ctx context.Context, pods corev1client.PodsGetter, pod *corev1.Pod, container string, previous bool) {
	name := "logs/" + pod.Namespace + "/" + pod.Name + "/" + container
	if previous {
		name += ".previous"
	}
	if e.bufferedBytes > diagnoseBufferBytes {
		e.omitted++
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, err := pods.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, TailLines: new(diagnoseLogLines), LimitBytes: new(diagnoseLogBytes),
	}).Stream(ctx)
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(stream, diagnoseLogBytes)) // an untrusted API server may send more than requested
		_ = stream.Close()
	}
	if err != nil {
		e.addError(name, err)
		return
	}
	e.bufferedBytes += len(data)
	e.logs = append(e.logs, outputFile{name + ".log", []byte(redact.Text(string(data)))})
}
