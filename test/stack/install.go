package stack

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/assets"
	"scute.dev/test/catalog"
)

// Webhooks describes where the admission webhooks are served.
type Webhooks struct {
	Port     int    // on 127.0.0.1
	CABundle []byte // PEM of the CA that signed the serving certificate
	CertDir  string // with tls.crt and tls.key
}

// clusterctlCRDs is the path of clusterctl's CRD in the core module.
var clusterctlCRDs = filepath.Join("cmd", "clusterctl", "config", "crd", "bases", "clusterctl.cluster.x-k8s.io_providers.yaml")

// Install applies the CRDs, namespaces and inventory of all providers, and their webhook configurations if webhooks is
// not nil. It returns when the API server serves the new kinds. Controllers serves the webhooks.
func Install(ctx context.Context, c client.Client, modules assets.Modules, webhooks *Webhooks) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	definitions, err := load(filepath.Join(modules.ClusterAPI, clusterctlCRDs))
	if err != nil {
		return err
	}
	var others []client.Object
	for _, p := range providers(modules) {
		crds, err := p.definitions()
		if err != nil {
			return err
		}
		definitions = append(definitions, crds...)
		others = append(others, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}})
		if webhooks != nil {
			configurations, err := p.webhooks(*webhooks)
			if err != nil {
				return err
			}
			others = append(others, configurations...)
		}
	}
	if err := create(ctx, c, definitions); err != nil {
		return err
	}
	if err := create(ctx, c, others); err != nil {
		return err
	}
	if err := established(ctx, c, definitions); err != nil {
		return err
	}
	var inventory []client.Object
	for _, p := range providers(modules) {
		inventory = append(inventory, p.inventory())
	}
	return create(ctx, c, inventory)
}

// definitions returns the provider's CRDs with the labels that its release and clusterctl set.
func (p provider) definitions() ([]client.Object, error) {
	crds, err := catalog.Definitions(p.config)
	var objects []client.Object
	for _, crd := range crds {
		p.mark(crd)
		objects = append(objects, crd)
	}
	return objects, err
}

// Serve creates CRDs and returns when the API server serves them.
func Serve(ctx context.Context, c client.Client, definitions []client.Object) error {
	if err := create(ctx, c, definitions); err != nil {
		return err
	}
	return established(ctx, c, definitions)
}

// webhooks returns the provider's webhook configurations with URLs instead of Services and with unique names, because
// all providers use the same ones before kustomize.
func (p provider) webhooks(at Webhooks) ([]client.Object, error) {
	objects, err := load(filepath.Join(p.config, "webhook", "manifests.yaml"))
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		object.SetName(p.label + "-" + object.GetName())
		p.mark(object)
		switch o := object.(type) {
		case *admissionv1.MutatingWebhookConfiguration:
			for i := range o.Webhooks {
				at.direct(&o.Webhooks[i].ClientConfig)
			}
		case *admissionv1.ValidatingWebhookConfiguration:
			for i := range o.Webhooks {
				at.direct(&o.Webhooks[i].ClientConfig)
			}
		}
	}
	return objects, nil
}

func (w Webhooks) direct(c *admissionv1.WebhookClientConfig) {
	url := fmt.Sprintf("https://127.0.0.1:%d%s", w.Port, *c.Service.Path)
	c.Service, c.URL, c.CABundle = nil, &url, w.CABundle
}

func (p provider) inventory() client.Object {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Provider",
		"providerName": p.name, "type": p.kind, "version": p.version,
	}}
	u.SetName(p.label)
	u.SetNamespace(p.namespace)
	p.mark(u)
	u.SetLabels(merge(u.GetLabels(), map[string]string{"clusterctl.cluster.x-k8s.io/core": "inventory"}))
	return u
}

func (p provider) mark(object client.Object) {
	object.SetLabels(merge(object.GetLabels(), map[string]string{
		"cluster.x-k8s.io/provider": p.label, "clusterctl.cluster.x-k8s.io": "",
	}))
}

func merge(into, from map[string]string) map[string]string {
	if into == nil {
		into = map[string]string{}
	}
	for k, v := range from {
		into[k] = v
	}
	return into
}

func create(ctx context.Context, c client.Client, objects []client.Object) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, object := range objects {
		group.Go(func() error {
			if err := c.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("installing %T %s: %w", object, object.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// established waits until the API server serves every definition.
func established(ctx context.Context, c client.Client, definitions []client.Object) error {
	var waiting []string
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := c.List(ctx, list); err != nil {
			return false, nil //nolint:nilerr // a cold API server answers 429 for a while
		}
		ready := map[string]bool{}
		for _, crd := range list.Items {
			for _, condition := range crd.Status.Conditions {
				if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
					ready[crd.Name] = true
				}
			}
		}
		waiting = waiting[:0]
		for _, d := range definitions {
			if !ready[d.GetName()] {
				waiting = append(waiting, d.GetName())
			}
		}
		return len(waiting) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API to serve %s: %w", strings.Join(waiting, ", "), err)
	}
	return nil
}
