package leak

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Watch adds every existing Secret of some clusters, and every later version of each Secret, until stop is called.
func (m *Material) Watch(configs ...*rest.Config) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	stop = func() { cancel(); running.Wait() }
	for _, config := range configs {
		clients, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "leak"))
		if err != nil {
			stop()
			return nil, fmt.Errorf("watching Secrets: %w", err)
		}
		take := func(o any) {
			if s, ok := o.(*corev1.Secret); ok {
				m.Add(s)
			}
		}
		_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: cache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "secrets", corev1.NamespaceAll, fields.Everything()),
			ObjectType:    &corev1.Secret{},
			Handler:       cache.ResourceEventHandlerFuncs{AddFunc: take, UpdateFunc: func(_, o any) { take(o) }, DeleteFunc: take},
		})
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	return stop, nil
}
