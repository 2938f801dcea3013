package providers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	clusterctl "sigs.k8s.io/cluster-api/cmd/clusterctl/client"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/internal/sleep"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

func (a *providerManager) inventory(ctx context.Context) (map[string]provider, error) {
	there := make(map[string]provider)
	err := a.cluster.Kube.List(ctx, kube.InventoryType(), "", func(u *unstructured.Unstructured) error {
		found := kube.ProviderOf(u)
		p := provider{Type: found.Type, Name: found.Name, Version: found.Version, Namespace: found.Namespace, stepKey: access.StepKeyOf(u)}
		there[p.label()] = p
		return nil
	})
	if apierrors.IsNotFound(err) {
		return there, nil // no provider was ever installed
	}
	return there, err
}

// plan compares the inputs with the inventory and returns the changes to record.
func (a *providerManager) plan(ctx context.Context, w With) (changeRecord, error) {
	record := changeRecord{}
	there, err := a.inventory(ctx)
	if err != nil {
		return record, err
	}
	for _, p := range there {
		record.Before = append(record.Before, p)
	}
	slices.SortFunc(record.Before, func(a, b provider) int { return strings.Compare(a.label(), b.label()) })
	if !slices.ContainsFunc(record.Before, func(p provider) bool { return p.Type == clusterctlv1.CoreProviderType }) && w.Core == "" {
		return record, task.Final(errors.New("with.core: the cluster has no core provider yet: name one, for example cluster-api:v1.14.2"))
	}
	for _, want := range w.requested() {
		have, ok := there[want.label()]
		switch {
		case ok && have.Version == want.Version:
		case ok && !w.Upgrade:
			return record, task.Final(fmt.Errorf("%s is installed in version %s, but %s is requested: set with.upgrade: true, or request the installed version", want.label(), have.Version, want.Version))
		case ok:
			want.Namespace = have.Namespace
			upgrade := upgradeRecord{provider: want, Replicas: make(map[string]int32)}
			list, err := a.deployments(ctx, want)
			if err != nil {
				return record, err
			}
			for i := range list {
				if n := list[i].Spec.Replicas; n != nil {
					upgrade.Replicas[list[i].Namespace+"/"+list[i].Name] = *n
				}
			}
			record.Upgrade = append(record.Upgrade, upgrade)
		default:
			install, err := a.install(ctx, want, w.TargetNamespace)
			if err != nil {
				return record, err
			}
			record.Install = append(record.Install, install)
		}
	}
	return record, nil
}

// install prepares the installation of a provider. It reads the provider's components to check that
// they can be downloaded, and records which of them already exist on the cluster.
func (a *providerManager) install(ctx context.Context, want provider, namespace string) (installRecord, error) {
	a.call.Progress("reading the components of " + want.String())
	components, err := a.clusterctlClient.GetProviderComponents(ctx, want.Name+":"+want.Version, want.Type, clusterctl.ComponentsOptions{TargetNamespace: namespace})
	if err != nil {
		return installRecord{}, fmt.Errorf("reading the components of %s: %w", want, err)
	}
	want.Namespace = components.TargetNamespace()
	install := installRecord{provider: want}
	left, err := a.components(ctx, want)
	if err != nil {
		return install, err
	}
	for _, u := range left {
		install.Keep = append(install.Keep, object.Observe(&u).Ref)
	}
	for _, o := range components.Objs() {
		ref := object.Observe(&o).Ref
		if slices.Contains(install.Keep, ref) {
			continue
		}
		_, err := a.cluster.Get(ctx, ref)
		switch {
		case err == nil:
			install.Keep = append(install.Keep, ref)
		case !apierrors.IsNotFound(err):
			return install, err
		}
	}
	slices.SortFunc(install.Keep, object.Compare)
	return install, nil
}

// components returns the objects on the cluster that have the labels of a provider.
func (a *providerManager) components(ctx context.Context, p provider) ([]unstructured.Unstructured, error) {
	return a.clusterClient.Proxy().ListResources(ctx, map[string]string{clusterctlv1.ClusterctlLabel: "", clusterv1.ProviderNameLabel: p.label()}, p.Namespace)
}

// applyChanges installs and upgrades providers. It makes only the changes that are still missing,
// because an earlier attempt may have made some.
func (a *providerManager) applyChanges(ctx context.Context, w With) error {
	there, err := a.inventory(ctx)
	if err != nil {
		return err
	}
	install, upgrade := make(references), make(references)
	var installs, upgrades []string
	for _, want := range w.requested() {
		have, ok := there[want.label()]
		switch {
		case !ok:
			installs = append(installs, want.String())
			install.add(want)
		case have.Version != want.Version:
			upgrades = append(upgrades, want.String())
			upgrade.add(want)
		}
	}
	if len(upgrades) > 0 {
		a.call.Progress("upgrading " + strings.Join(upgrades, ", "))
		watched, cancel := a.refusal.watch(ctx)
		defer cancel()
		if err := a.refusal.override(a.clusterctlClient.ApplyUpgrade(watched, clusterctl.ApplyUpgradeOptions{
			Kubeconfig: a.kubeconfig, CoreProvider: strings.Join(upgrade[clusterctlv1.CoreProviderType], ""),
			BootstrapProviders: upgrade[clusterctlv1.BootstrapProviderType], ControlPlaneProviders: upgrade[clusterctlv1.ControlPlaneProviderType],
			InfrastructureProviders: upgrade[clusterctlv1.InfrastructureProviderType], IPAMProviders: upgrade[clusterctlv1.IPAMProviderType],
			RuntimeExtensionProviders: upgrade[clusterctlv1.RuntimeExtensionProviderType], AddonProviders: upgrade[clusterctlv1.AddonProviderType],
		})); err != nil {
			return fmt.Errorf("upgrading %s: %w", strings.Join(upgrades, ", "), err)
		}
	}
	if len(installs) == 0 {
		return nil
	}
	// Without a core provider clusterctl would add kubeadm: install only named providers.
	for _, kind := range []clusterctlv1.ProviderType{clusterctlv1.BootstrapProviderType, clusterctlv1.ControlPlaneProviderType} {
		if len(install[kind]) == 0 {
			install[kind] = []string{clusterctl.NoopProvider}
		}
	}
	a.call.Progress("installing " + strings.Join(installs, ", "))
	watched, cancel := a.refusal.watch(ctx)
	defer cancel()
	if _, err := a.clusterctlClient.Init(watched, clusterctl.InitOptions{
		Kubeconfig: a.kubeconfig, TargetNamespace: w.TargetNamespace, CoreProvider: strings.Join(install[clusterctlv1.CoreProviderType], ""),
		BootstrapProviders: install[clusterctlv1.BootstrapProviderType], ControlPlaneProviders: install[clusterctlv1.ControlPlaneProviderType],
		InfrastructureProviders: install[clusterctlv1.InfrastructureProviderType], IPAMProviders: install[clusterctlv1.IPAMProviderType],
		RuntimeExtensionProviders: install[clusterctlv1.RuntimeExtensionProviderType], AddonProviders: install[clusterctlv1.AddonProviderType],
	}); err != nil {
		err = a.refusal.override(err)
		return fmt.Errorf("installing %s: %w", strings.Join(installs, ", "), err)
	}
	return nil
}

type references map[clusterctlv1.ProviderType][]string

func (r references) add(p provider) { r[p.Type] = append(r[p.Type], p.Name+":"+p.Version) }

func (a *providerManager) waitAvailable(ctx context.Context, wanted []provider) error {
	a.call.YieldSlot()
	pace := access.NewBackoff()
	for {
		var waiting []string
		for _, p := range wanted {
			list, err := a.deployments(ctx, p)
			if err != nil {
				return err
			}
			for i := range list {
				if d := &list[i]; !deploymentAvailable(d) {
					waiting = append(waiting, d.Namespace+"/"+d.Name)
				}
			}
		}
		if len(waiting) == 0 {
			return nil
		}
		a.call.Progress("waiting until Deployments are available: " + strings.Join(waiting, ", "))
		if err := sleep.For(ctx, pace.NextBackOff()); err != nil {
			return fmt.Errorf("Deployments are not available: %s: check their pods: %w", strings.Join(waiting, ", "), err) //nolint:staticcheck // the name of a kind
		}
	}
}

func (a *providerManager) deployments(ctx context.Context, p provider) (all []appsv1.Deployment, err error) {
	what := "list Deployments of " + p.label()
	err = kube.EachPage(what, func(o metav1.ListOptions) (string, error) {
		list := &appsv1.DeploymentList{}
		err := a.cluster.Kube.Do(ctx, what, func(ctx context.Context) error {
			return a.cluster.Client.List(ctx, list, client.MatchingLabels{clusterv1.ProviderNameLabel: p.label()}, client.Limit(o.Limit), client.Continue(o.Continue))
		})
		all = append(all, list.Items...)
		return list.Continue, err
	})
	return all, err
}

func deploymentAvailable(d *appsv1.Deployment) bool {
	if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < d.Status.Replicas {
		return false
	}
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
}
