package pause

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause/hold"
	"scute.dev/view"
)

type pausedCluster struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Paused    bool          `json:"paused"`
	By        []pauseHolder `json:"by"`
}

type pauseHolder struct {
	Name  string       `json:"name"`
	Since *metav1.Time `json:"since,omitempty"`
	// Unacknowledged are the first objects that have not acknowledged the pause.
	Unacknowledged []string `json:"unacknowledged,omitempty"`

	needsObjects bool // Unacknowledged must be filled by reading the objects
}

type getClustersOptions struct {
	*kit.Kit
	names         []string
	allNamespaces bool
	format        cli.Format
}

func newCmdGetClusters(env *cli.Env) *cobra.Command {
	o := &getClustersOptions{}
	cmd := &cobra.Command{
		Use: "cluster [NAME ...]", Aliases: []string{"clusters"}, Short: "List clusters: who paused each, since when, and which objects have not acknowledged",
		Long: `List clusters with everything that keeps each paused: Pauses, tasks of runs, moves, and the field manager that has set spec.paused.

The objects that have not acknowledged come from the status of the Pause. For a cluster that no Pause has paused, they are the
objects whose condition Paused is False.`,
		Example: kit.Examples(env, "$ get clusters -A", "$ get cluster prod -n fleet -o json"),
		Args:    kit.Names(-1),
		RunE:    kit.WithNames(&o.names, o.run),
	}
	o.Kit = kit.New(env, cmd, "clusters")
	kit.AllNamespacesVar(cmd, &o.allNamespaces)
	o.format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *getClustersOptions) run(ctx context.Context) error {
	cluster, err := o.Flags.Cluster()
	if err != nil {
		return err
	}
	namespace := cluster.Namespace
	if o.allNamespaces {
		namespace = ""
	}
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	list, err := o.read(ctx, cluster, namespace)
	if err != nil {
		return err
	}
	if o.format.Data() {
		return o.format.Print(o.Env.Out, map[string]any{"clusters": list})
	}
	if len(list) == 0 {
		o.Env.Notef("There are no such clusters.")
		return nil
	}
	return o.Print(clusterTable(o.View(), list, o.allNamespaces))
}

// read lists the clusters. If the user may not read some related objects, it prints a note about
// them.
func (o *getClustersOptions) read(ctx context.Context, c *connect.Cluster, namespace string) ([]pausedCluster, error) {
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterList"))
	switch err := c.Client.List(ctx, found, client.InNamespace(namespace)); {
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("the cluster at %s does not serve Cluster API's clusters of %s, which Cluster API v1.11 and newer do: choose another --context", c.Config.Host, clusterv1.GroupVersion)
	case err != nil:
		return nil, fmt.Errorf("listing clusters: %w", c.Explain(err))
	}
	pauses, err := InCluster(c, nil).List(ctx, namespace)
	if err != nil {
		o.Env.Notef("Pauses are not shown: %v", err)
	}
	list, unpaused := []pausedCluster{}, map[types.NamespacedName][]string(nil)
	for i := range found.Items {
		u := &found.Items[i]
		if len(o.names) > 0 && !slices.Contains(o.names, u.GetName()) {
			continue
		}
		p := pausedBy(u, pauses)
		for j := range p.By {
			if by := &p.By[j]; by.needsObjects {
				if unpaused == nil {
					if unpaused, err = unpausedObjects(ctx, c, namespace); err != nil {
						o.Env.Notef("Some objects that have not acknowledged are not shown: %v", c.Explain(err))
					}
				}
				by.Unacknowledged = unpaused[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
			}
		}
		list = append(list, p)
	}
	return list, nil
}

func pausedBy(u *unstructured.Unstructured, pauses []*v1alpha1.Pause) pausedCluster {
	o := object.Observe(u)
	p := pausedCluster{Namespace: u.GetNamespace(), Name: u.GetName(), Paused: o.PausedByUser || o.Cluster.Paused}
	add := func(who string, since *metav1.Time) {
		p.By = append(p.By, pauseHolder{Name: who, Since: since, needsObjects: true})
	}
	since := object.TrueSince(u, clusterv1.PausedCondition) // when the Cluster's controller acknowledged the pause, or nil
	for _, mark := range slices.Sorted(maps.Keys(o.PauseHolders)) {
		uid, byPause := strings.CutPrefix(mark, object.PausePrefix)
		if !byPause {
			add("task "+o.PauseHolders[mark], since)
			continue
		}
		by := pauseHolder{Name: "Pause " + o.PauseHolders[mark], needsObjects: true}
		if i := slices.IndexFunc(pauses, func(p *v1alpha1.Pause) bool { return string(p.UID) == uid }); i >= 0 {
			by.Since = pauses[i].Status.StartedAt
			by.Unacknowledged, by.needsObjects = waitingFor(pauses[i], p.Name)
		}
		p.By = append(p.By, by)
	}
	if o.MoveID != "" {
		add("move "+o.MoveID, since)
	}
	switch before := u.GetAnnotations()[object.PausedBeforeAnnotation]; {
	case before == "true":
		add("somebody, earlier", nil)
	case p.Paused && len(p.By) == 0 && o.PausedByUser:
		add("annotation "+object.PausedAnnotation, since)
	case p.Paused && len(p.By) == 0:
		add(cmp.Or(hold.SwitchOf(o.Ref).Owner(u), "unknown"), since)
	}
	return p
}

// waitingFor returns the objects of the cluster name for which a Pause waits. ask is true if the
// status does not tell and the objects must be read from the cluster: the status lists only the
// first objects of all clusters together.
func waitingFor(p *v1alpha1.Pause, name string) (objects []string, ask bool) {
	own, others := false, false
	for _, c := range p.Status.Clusters {
		own, others = own || c.Name == name && c.Pending > 0, others || c.Name != name && c.Pending > 0
	}
	if !own || others {
		return nil, own
	}
	for _, w := range p.Status.WaitingFor {
		objects = append(objects, w.Object+": "+w.Message)
	}
	return objects, false
}

// unpausedObjects returns, by cluster, the objects whose condition Paused is False. An empty
// namespace means all namespaces. The error names kinds that could not be listed.
func unpausedObjects(ctx context.Context, c *connect.Cluster, namespace string) (map[types.NamespacedName][]string, error) {
	found := make(map[types.NamespacedName][]string)
	k, err := kube.Connect("cluster", c.Config)
	if err != nil {
		return found, err
	}
	kinds, _, err := k.MovableTypes(ctx)
	if err != nil {
		return found, err
	}
	var unlisted []error
	for _, typ := range kinds {
		if !typ.Namespaced || typ.IsCore() {
			continue
		}
		err := k.List(ctx, typ, namespace, func(u *unstructured.Unstructured) error {
			o := object.Observe(u)
			name := o.ClusterName
			if o.Cluster != nil {
				name = o.Ref.Name
			}
			if o.Paused == object.False && name != "" {
				key := types.NamespacedName{Namespace: u.GetNamespace(), Name: name}
				found[key] = append(found[key], o.Ref.String())
			}
			return nil
		})
		if err != nil {
			unlisted = append(unlisted, fmt.Errorf("%s: %w", typ.GroupKind(), err))
		}
	}
	return found, errors.Join(unlisted...)
}

// clusterTable renders one row for each cluster, and one more for each further holder.
func clusterTable(v kit.View, list []pausedCluster, namespaces bool) []string {
	header := kit.Row{Cells: []string{"NAME", "PAUSED", "BY", "SINCE", "NOT ACKNOWLEDGED"}}
	var rows []kit.Row
	for _, c := range list {
		row := kit.Row{Namespace: c.Namespace, Cells: []string{c.Name, "no", "-", "-", "-"}}
		if c.Paused {
			row.Cells[1] = "yes"
		}
		for i, by := range c.By {
			if i > 0 {
				rows = append(rows, row)
				row = kit.Row{Cells: []string{"", "", "", "", ""}}
			}
			row.Cells[2], row.Cells[3], row.Cells[4] = by.Name, "-", "-"
			if by.Since != nil {
				row.Cells[3] = cli.Ago(v.Now, by.Since.Time)
			}
			if n := len(by.Unacknowledged); n > 0 {
				const few = 3
				row.Cells[4] = cli.Clean(view.Count(n, "object") + ": " + strings.Join(by.Unacknowledged[:min(n, few)], ", "))
			}
		}
		rows = append(rows, row)
	}
	return v.Rows(header, rows, namespaces, false)
}
