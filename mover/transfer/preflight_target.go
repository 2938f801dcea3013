package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"scute.dev/kube"
	"scute.dev/kube/guard"
	"scute.dev/mover"
)

const targetField = "spec.target.kubeconfigSecretRef"

// fieldFor returns ofMove for a move, or ofCommand for a backup or a restore.
func (t *Transfer) fieldFor(ofMove, ofCommand string) string {
	if t.command {
		return ofCommand
	}
	return ofMove
}

func (t *Transfer) targetField() string { return t.fieldFor(targetField, "target") }

func (t *Transfer) retryAdvice() string {
	return t.fieldFor("create another Move", "run the command again")
}

func unreachedAdvice(err error) string {
	var known *FinalError
	switch {
	case errors.As(err, &known) && known.Next != "":
		return known.Next
	case errors.Is(err, guard.ErrDenied):
		return allowAddress
	case apierrors.IsUnauthorized(err):
		return "put new credentials into the Secret: the target does not accept the present ones"
	case apierrors.IsForbidden(err):
		return "on the target, bind the ClusterRole scute-move-target of the chart to the identity in the kubeconfig"
	default:
		return "check the address in the kubeconfig, and that scuted can reach the target"
	}
}

func (p *scope) checkStatus(ctx context.Context) (found findings, err error) {
	field := p.fieldFor("spec.carryStatus", "--carry-status")
	for _, kind := range p.spec.CarryStatus {
		onto, ok := p.targetTypes[kind]
		if !ok {
			found.AddError(field, fmt.Sprintf("the target serves no kind %q that moves", kind), "write it as Kind.group, for example DevMachine.infrastructure.cluster.x-k8s.io")
			continue
		}
		allowed, err := p.target.IsAllowed(ctx, "patch", onto, "status", p.spec.Namespace)
		if err != nil {
			return found, err
		}
		if !allowed {
			found.AddError(field, "on the target scute may not patch the status of "+kind, "grant patch on "+onto.Plural+"/status on the target")
		}
	}
	return found, nil
}

// checkKinds returns an error for each kind that the target does not serve in the source's version,
// or only with an older contract of Cluster API.
func (p *scope) checkKinds(context.Context) (found findings, err error) {
	const upgrade = "upgrade the provider on the target to the source's version"
	type kept struct{ kind, version string }
	asked := make(map[kept]bool) // files of clusterctl may have a kind in several versions
	for _, m := range p.members.Objects {
		kind, version := m.Ref.GroupKind(), m.Version
		if asked[kept{kind, version}] {
			continue
		}
		asked[kept{kind, version}] = true
		onto, ok := p.targetTypes[kind]
		switch field, contracts := "target: "+kind, p.sourceTypes[kind].Contracts; {
		case !ok:
			found.AddError(field, "the target does not serve this kind", "install its provider on the target, in the source's version or a newer one")
		case !slices.Contains(onto.Versions, version):
			found.AddError(field, fmt.Sprintf("the source uses version %s; the target serves only %v", version, onto.Versions), upgrade)
		case len(contracts) > 0 && len(onto.Contracts) > 0 && slices.Max(onto.Contracts) < slices.Max(contracts):
			found.AddError(field, fmt.Sprintf("the source's provider supports contract %v, the target's %v", contracts, onto.Contracts), upgrade)
		}
	}
	return found, nil
}

func (p *scope) checkProviders(ctx context.Context) (found findings, err error) {
	var want, have map[string]string
	both, asking := errgroup.WithContext(ctx)
	both.Go(func() (err error) { have, err = inventory(asking, p.target); return err })
	both.Go(func() (err error) { want, err = p.providers(asking); return err })
	switch err := both.Wait(); {
	case apierrors.IsForbidden(err):
		found.AddWarning(providersField, "the versions of the providers could not be compared: "+err.Error(), grantAdvice())
		return found, nil
	case err != nil:
		return nil, err
	}
	return p.compareProviders(want, have), nil
}

const providersField = "target: providers"

func grantAdvice() string {
	return "grant list on " + kube.InventoryType().Resource().GroupResource().String() + " and on the kinds of operator.cluster.x-k8s.io, as the chart's roles do"
}

func (t *Transfer) providers(ctx context.Context) (map[string]string, error) {
	if t.archive != nil {
		return t.archive.Index.Providers, nil
	}
	return inventory(ctx, t.Source)
}

func (t *Transfer) sourceID(ctx context.Context) (string, error) {
	if t.archive != nil {
		return t.archive.Index.Source.Cluster, nil
	}
	return t.Source.NamespaceUID(ctx, metav1.NamespaceSystem)
}

func inventory(ctx context.Context, c *kube.Cluster) (map[string]string, error) {
	found := make(map[string]string)
	list, err := c.Providers(ctx)
	for _, p := range list {
		if name := string(p.Type) + " " + p.Name; found[name] == "" && p.Version != "" {
			found[name] = p.Version
		}
	}
	return found, err
}

// compareProviders returns an error for each provider that is older on the target. It returns only
// a warning for providers that the target does not record, because they may be installed:
// checkKinds checks their kinds.
func (t *Transfer) compareProviders(want, have map[string]string) (found findings) {
	const remedy = "compare the versions yourself: the target needs the versions of the source, or newer ones"
	side, without := "the source", ""
	if t.archive != nil {
		side = "the backup"
	}
	switch {
	case len(want) == 0:
		without = side
	case len(have) == 0:
		without = "the target"
	}
	if without != "" {
		found.AddWarning(providersField, "the versions of the providers were not compared: "+without+
			" records none, neither in clusterctl's inventory nor with Cluster API's operator", remedy)
		return found
	}
	var unrecorded []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		old, errOld := version.ParseSemantic(want[name])
		got, errGot := version.ParseSemantic(have[name])
		switch {
		case have[name] == "":
			unrecorded = append(unrecorded, name+" "+want[name])
		case errOld == nil && errGot == nil && got.LessThan(old):
			found.AddError("target: "+name, "the target has "+have[name]+", "+side+" "+want[name], "upgrade it with clusterctl upgrade")
		}
	}
	if len(unrecorded) > 0 {
		found.AddWarning(providersField, "the versions of these providers of "+side+" were not compared, because the target does not record them: "+strings.Join(unrecorded, ", "), remedy)
	}
	return found
}

// checkExtensions returns an error for each runtime extension handler that a ClusterClass names and
// the target does not have. It returns a warning for each other ExtensionConfig that the target
// does not have, because its hooks are called for every Cluster.
func (p *scope) checkExtensions(ctx context.Context) (found findings, err error) {
	kind := "ExtensionConfig." + runtimev1.GroupVersion.Group
	wanted := make(map[string]string) // by handler, a class that names it
	for _, m := range p.members.Objects {
		for _, handler := range m.Extensions {
			wanted[handler] = m.Ref.String()
		}
	}
	there := make(map[string]bool) // ExtensionConfigs and their handlers
	if typ, served := p.targetTypes[kind]; served {
		err := p.target.List(ctx, typ, "", func(u *unstructured.Unstructured) error {
			there[u.GetName()] = true
			handlers, _, _ := unstructured.NestedSlice(u.Object, "status", "handlers")
			for _, handler := range handlers {
				handler, _ := handler.(map[string]any)
				name, _ := handler["name"].(string)
				there[name] = true
			}
			return nil
		})
		if apierrors.IsForbidden(err) {
			if len(wanted) > 0 {
				found.AddWarning("target: "+kind, "the runtime extensions of ClusterClasses were not checked: "+err.Error(),
					"grant list on extensionconfigs on the target")
			}
			return found, nil
		}
		if err != nil {
			return nil, err
		}
	}
	for _, handler := range slices.Sorted(maps.Keys(wanted)) {
		_, name, _ := strings.Cut(handler, ".")
		switch field := "target: " + kind + " " + name; {
		case !there[name]:
			found.AddError(field, "it does not exist, but "+wanted[handler]+" calls its handler "+handler,
				"install the runtime extension on the target, with its ExtensionConfig")
		case !there[handler]:
			found.AddError(field, "it has no handler "+handler+", which "+wanted[handler]+" calls",
				"upgrade the runtime extension on the target to the source's version, and check why its ExtensionConfig is not Discovered")
		}
		there[name] = true
	}
	for _, o := range p.snapshot.objects {
		if o.Ref.GroupKind() == kind && !there[o.Ref.Name] {
			found.AddWarning("target: "+o.Ref.String(), "it does not exist on the target, but the source calls its hooks",
				"install the runtime extension on the target first, if its hooks are for the Clusters that move")
		}
	}
	return found, nil
}

// checkWithheld returns an error for each object that does not move, because it is in a namespace
// that is not shared, and that the target does not have. Providers need such Secrets, and Clusters
// such ClusterClasses.
func (p *scope) checkWithheld(ctx context.Context) (findings, error) {
	left := slices.DeleteFunc(slices.Clone(p.members.Excluded), func(l mover.ObjectReason) bool { return !isElsewhere(l.Ref, p.spec.Namespace) })
	return p.checkOnTarget(ctx, left,
		"it does not move, and it was not found on the target: ", "create it on the target; or "+shareAdvice,
		"it does not move, and the existing object on the target is used: ", shareAdvice+" to move it")
}

func (p *scope) checkMissing(ctx context.Context) (findings, error) {
	return p.checkOnTarget(ctx, p.members.Missing,
		"it was not found on the target: ", "create it on the target, or correct the field",
		"the existing object on the target is used: ", "check that it is the right object")
}

// checkOnTarget returns an error for each object that the target does not have or that scute may
// not read there, and a warning for each object that exists.
func (p *scope) checkOnTarget(ctx context.Context, objects []mover.ObjectReason, lacks, add, has, review string) (found findings, err error) {
	for _, l := range objects {
		typ, served := p.targetTypes[l.Ref.GroupKind()]
		if served {
			_, err = p.target.Get(ctx, typ, l.Ref.Namespace, l.Ref.Name)
		}
		switch {
		case !served, apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			found.AddError("target: "+l.Ref.String(), lacks+l.Reason, add)
		case err != nil:
			return found, err
		default:
			found.AddWarning(l.Ref.String(), has+l.Reason, review)
		}
	}
	return found, nil
}
