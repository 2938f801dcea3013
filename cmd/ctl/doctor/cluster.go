package doctor

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/internal/trust"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover/transfer"
	"scute.dev/view"
)

func apiServer(ctx context.Context, v *diagnosis) bool {
	cluster, err := v.flags.Cluster()
	if err != nil {
		v.report(problem("Kubernetes", "set KUBECONFIG, --kubeconfig or --context to the management cluster", "%v", err))
		return false
	}
	v.kube, err = kube.Connect("cluster", cluster.Config)
	var server version.Info
	if err == nil {
		server, err = serverVersion(ctx, cluster)
	}
	if err != nil {
		v.report(problem("Kubernetes", "check the address, the network and your credentials: kubectl get --raw /version", "%v", cluster.Explain(err)))
		return false
	}
	v.report(ok("Kubernetes", "%s at %s", server.GitVersion, cluster.Config.Host))
	v.cluster = cluster
	return true
}

func serverVersion(ctx context.Context, cluster *connect.Cluster) (info version.Info, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	asking, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		return info, err
	}
	body, err := asking.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return info, err
	}
	return info, json.Unmarshal(body, &info)
}

func clusterAPI(ctx context.Context, v *diagnosis) bool {
	const subject = "Cluster API"
	types, _, err := v.kube.MovableTypes(ctx)
	if apierrors.IsForbidden(err) {
		v.report(warning(subject, "ask for permission to list customresourcedefinitions, or have somebody with this permission run the command", "its kinds could not be listed: %v", err))
		return true
	}
	if err != nil {
		v.report(problem(subject, "check the error of the API server: kubectl get crds", "%v", err))
		return true
	}
	v.types = types
	i := slices.IndexFunc(types, isCluster)
	if i < 0 {
		v.report(problem(subject, "install it: clusterctl init", "Clusters are not served: this is not a management cluster"))
		return true
	}
	newest := clusterv1.GroupVersion.Version
	if !slices.Contains(types[i].Versions, newest) {
		v.report(problem(subject, "upgrade Cluster API to 1.11 or newer: clusterctl upgrade plan", "Clusters are served in %s; scute needs %s", strings.Join(types[i].Versions, ", "), newest))
		return true
	}
	v.report(ok(subject, "Clusters are served in %s; %d kinds can be moved", newest, len(types)))
	var old []string
	for _, t := range types {
		if len(t.Contracts) > 0 && !slices.Contains(t.Contracts, newest) {
			old = append(old, t.GroupKind())
		}
	}
	if len(old) > 0 {
		v.report(ok(subject, "%s of contract v1beta1, which Cluster API supports until v1.16: %s. To check whether they acknowledge a pause: scutectl doctor provider",
			view.Count(len(old), "kind"), view.First(old)))
	}
	return true
}

func isCluster(t kube.Type) bool { return t.Group == object.CoreGroup && t.Kind == "Cluster" }

func checkServed(ctx context.Context, v *diagnosis) bool {
	const subject = "scute's kinds"
	_, err := v.cluster.Client.RESTMapper().RESTMapping(v1alpha1.GroupVersion().WithKind("Move").GroupKind(), v1alpha1.GroupVersion().Version)
	if err != nil {
		v.report(problem(subject, "helm install scute charts/scute -n "+v.flags.ScuteNamespace+" --create-namespace", "%v", v.cluster.Explain(err)))
		return false
	}
	v.served = true
	v.report(ok(subject, "moves.%s", v1alpha1.GroupVersion()))
	return ctx.Err() == nil
}

func daemon(ctx context.Context, v *diagnosis) bool {
	const subject = "scuted"
	pods, err := v.flags.Daemons(ctx, v.cluster)
	if err != nil {
		v.podsHidden = true
		v.report(warning(subject, "ask for permission to list pods there, or name the daemon's namespace with --scute-namespace", "%v", err))
		return true
	}
	ready, account := 0, client.ObjectKey{}
	for i := range pods {
		p := &pods[i]
		switch {
		case p.DeletionTimestamp != nil:
		case connect.Ready(p):
			ready++
			v.account = client.ObjectKey{Namespace: p.Namespace, Name: p.Spec.ServiceAccountName}
			v.report(ok(subject, "pod %s/%s is ready, %s", p.Namespace, p.Name, image(p)))
		default:
			account = client.ObjectKey{Namespace: p.Namespace, Name: p.Spec.ServiceAccountName}
			v.report(warning(subject, "kubectl -n "+p.Namespace+" describe pod "+p.Name+"; kubectl -n "+p.Namespace+" logs "+p.Name,
				"pod %s/%s is %s and not ready", p.Namespace, p.Name, p.Status.Phase))
		}
	}
	if ready > 0 {
		return true
	}
	// The daemon may also run outside the cluster. The active daemon renews the Lease.
	holder, fresh := leader(ctx, v)
	if fresh && account != (client.ObjectKey{}) {
		v.report(ok(subject, "no pod is ready, but a daemon is active: %s holds the lease", holder))
		v.account = account
		return true
	}
	if fresh {
		v.report(ok(subject, "the daemon runs outside this cluster: %s holds the lease", holder))
		v.daemonOutside = true
		chart := client.ObjectKey{Namespace: v.flags.ScuteNamespace, Name: "scute"}
		if err := v.cluster.Client.Get(ctx, chart, &corev1.ServiceAccount{}); err == nil {
			v.account = chart
		}
		return true
	}
	v.noDaemon = true
	v.report(problem(subject, "install it (helm install scute charts/scute -n "+v.flags.ScuteNamespace+"), or name its namespace with --scute-namespace",
		"no ready pod in namespace %s, and nobody holds the lease: no daemon drives moves", v.flags.ScuteNamespace))
	return true
}

// leader returns the holder of the Lease, and whether the Lease has not expired. A daemon that
// stops releases the Lease.
func leader(ctx context.Context, v *diagnosis) (holder string, fresh bool) {
	var lease coordinationv1.Lease
	err := v.cluster.Client.Get(ctx, client.ObjectKey{Namespace: trust.LeaseNamespace, Name: trust.LeaseName}, &lease)
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return "", false
	}
	age := v.now().Sub(lease.Spec.RenewTime.Time)
	return *lease.Spec.HolderIdentity, age < time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second
}

func image(p *corev1.Pod) string {
	if len(p.Spec.Containers) == 0 {
		return "no container"
	}
	return p.Spec.Containers[0].Image
}

// unfinishedRestores reports restores that have not finished. It also finds restores into a cluster
// without scute.
func unfinishedRestores(ctx context.Context, v *diagnosis) bool {
	const subject = "restores"
	unfinished, err := transfer.UnfinishedRestores(ctx, v.kube)
	for _, r := range unfinished {
		for _, name := range r.Clusters {
			v.report(problem(subject, "run the same restore command again: it continues. Do not unpause the cluster, and do not remove annotations",
				"the restore of %s/%s from backup %s has not finished", r.Namespace, name, r.Backup))
		}
	}
	if err != nil {
		v.report(warning(subject, "ask for permission to list configmaps of all namespaces", "%v", err))
	}
	return true
}
