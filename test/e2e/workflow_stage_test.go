package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/workflow"
	"scute.dev/workflow/manifest"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/tasks"
)

// stage is a namespace for WorkflowRuns, with an account that has the permissions they need, and a kubelet.
type stage struct {
	ns, account string
	admin       client.Client
	kubelet     *kubelet
	nats        string // the address of the daemon's log
}

// workflowStage creates a namespace on blue, with a ServiceAccount that may change its ConfigMaps and Pods.
func workflowStage(ctx context.Context, t *testing.T, ns string) *stage {
	t.Helper()
	admin, err := shared.blue.Client()
	harness.Must(t, err)
	s := &stage{ns: ns, account: "runs", admin: admin}
	all := shared.blue.Side.Client()
	harness.Must(t, all.Create(ctx, namespace(ns)))
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: s.account}},
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: s.account},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"", "cluster.x-k8s.io"}, Resources: []string{"configmaps", "pods", "clusters"},
				Verbs: []string{"get", "list", "watch", "create", "patch", "update", "delete"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: s.account},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: s.account},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: s.account}},
		},
	} {
		harness.Must(t, all.Create(ctx, o))
	}
	harness.Allowed(ctx, t, all, s.user(s.account), authorizationv1.ResourceAttributes{Namespace: ns, Verb: "create", Resource: "configmaps"})
	s.kubelet = startKubelet(t, admin, ns)
	return s
}

// user returns the user name of an account of the namespace.
func (s *stage) user(account string) string { return "system:serviceaccount:" + s.ns + ":" + account }

// mayAll makes the namespace's account admin a cluster admin until the test ends.
func (s *stage) mayAll(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	all := shared.blue.Side.Client()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.ns, Name: "admin"}},
	}
	harness.Must(t, all.Create(ctx, binding))
	cleanup(t, func(ctx context.Context) error { return all.Delete(ctx, binding) })
	harness.Allowed(ctx, t, all, s.user("admin"), authorizationv1.ResourceAttributes{Verb: "patch", Group: "cluster.x-k8s.io", Resource: "clusters"})
}

// create creates a WorkflowRun from a spec in YAML.
func (s *stage) create(ctx context.Context, t *testing.T, name, spec string) {
	t.Helper()
	w, err := scuted.NewWorkflowRun(s.ns, name, s.account, spec)
	harness.Must(t, err)
	harness.Must(t, s.admin.Create(ctx, w))
}

func (s *stage) until(ctx context.Context, t *testing.T, name string, done func(*v1alpha1.WorkflowRun) bool) *v1alpha1.WorkflowRun {
	t.Helper()
	w, err := shared.blue.WaitWorkflowRun(ctx, s.ns, name, done)
	harness.Must(t, err)
	return w
}

// run creates a WorkflowRun and waits until it stops in this phase.
func (s *stage) run(ctx context.Context, t *testing.T, name string, phase v1alpha1.RunPhase, spec string) *v1alpha1.WorkflowRun {
	t.Helper()
	s.create(ctx, t, name, spec)
	return s.rests(ctx, t, name, phase)
}

func (s *stage) rests(ctx context.Context, t *testing.T, name string, phase v1alpha1.RunPhase) *v1alpha1.WorkflowRun {
	t.Helper()
	w := s.until(ctx, t, name, scuted.Rests)
	if w.Status.Phase != phase {
		t.Fatalf("%s: phase %s, want %s: %s\n%s", name, w.Status.Phase, phase, w.Status.Message, scuted.Tasks(w))
	}
	return w
}

// stand checks the phases of tasks: "name=Phase name=Phase ...".
func stand(t *testing.T, w *v1alpha1.WorkflowRun, want string) {
	t.Helper()
	for _, pair := range strings.Fields(want) {
		name, phase, _ := strings.Cut(pair, "=")
		if got := scuted.TaskOf(w, name).Phase; string(got) != phase {
			t.Errorf("%s: task %s is %q, want %s\n%s", w.Name, name, got, phase, scuted.Tasks(w))
		}
	}
}

// exists reports whether an object exists.
func (s *stage) exists(ctx context.Context, t *testing.T, o client.Object, name string) bool {
	t.Helper()
	err := s.admin.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: name}, o)
	if !apierrors.IsNotFound(err) {
		harness.Must(t, err)
	}
	return err == nil
}

// maps checks which ConfigMaps exist: "name !name ...".
func (s *stage) maps(ctx context.Context, t *testing.T, want string) {
	t.Helper()
	for _, name := range strings.Fields(want) {
		wanted := !strings.HasPrefix(name, "!")
		if got := s.exists(ctx, t, &corev1.ConfigMap{}, strings.TrimPrefix(name, "!")); got != wanted {
			t.Errorf("ConfigMap %s exists: %v, want %v", name, got, wanted)
		}
	}
}

// command writes an operator's command to the log, as scutectl does.
func (s *stage) command(ctx context.Context, t *testing.T, name string, in workflow.Input) {
	t.Helper()
	w := s.until(ctx, t, name, func(w *v1alpha1.WorkflowRun) bool { return w.Status.RunID != "" })
	r := s.open(ctx, t)
	harness.Must(t, r.Command(ctx, w.Status.RunID, "user/e2e", in))
	s.adopt(ctx, t, r, w.Status.RunID, name)
}

// adopt makes a WorkflowRun adopt the events of its run in the log, as scutectl does.
func (s *stage) adopt(ctx context.Context, t *testing.T, r *runner.Runner, id, name string) {
	t.Helper()
	records, err := r.Log.Read(ctx, eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}, 0)
	harness.Must(t, err)
	digest := ""
	for _, record := range records {
		events, err := record.Events()
		harness.Must(t, err)
		for _, e := range events {
			digest = runner.Digest(digest, e)
		}
	}
	w := &v1alpha1.WorkflowRun{}
	w.Namespace, w.Name = s.ns, name
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AdoptedAnnotation, digest)
	harness.Must(t, s.admin.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// request writes a run to the log for which there is no resource.
func (s *stage) request(ctx context.Context, t *testing.T, id, name, spec string) {
	t.Helper()
	w, err := scuted.NewWorkflowRun(s.ns, name, s.account, spec)
	harness.Must(t, err)
	env := manifest.Env{Kinds: tasks.Kinds(tasks.Options{ExecEnabled: true})}
	d, problems, err := env.Definition(ctx, s.ns, name, &w.Spec)
	harness.Must(t, err)
	if d == nil {
		t.Fatal(problems)
	}
	r := s.open(ctx, t)
	harness.Must(t, r.Request(ctx, id, "user/e2e", d))
	s.adopt(ctx, t, r, id, name)
}

// open connects to the daemon's log until the test ends.
func (s *stage) open(ctx context.Context, t *testing.T) *runner.Runner {
	t.Helper()
	log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: s.nats})
	harness.Must(t, err)
	t.Cleanup(func() { log.Close() })
	return &runner.Runner{Log: log}
}

// kubelet sets the status of a namespace's Pods according to their label "becomes", unless a test has set another one.
// The test bed has no real kubelet.
type kubelet struct {
	mu      sync.Mutex
	becomes map[string]string
}

// What a Pod can become.
const (
	isReady  = "Ready"
	crashing = "Crashing" // in a crash loop: kstatus reports it as failed
)

func startKubelet(t *testing.T, c client.Client, ns string) *kubelet {
	k := &kubelet{becomes: make(map[string]string)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			var pods corev1.PodList
			if c.List(ctx, &pods, inNamespace(ns)) == nil {
				for i := range pods.Items {
					k.tend(ctx, c, &pods.Items[i])
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return k
}

func (k *kubelet) tend(ctx context.Context, c client.Client, pod *corev1.Pod) {
	k.mu.Lock()
	becomes, told := k.becomes[pod.Name]
	k.mu.Unlock()
	if !told {
		becomes = pod.Labels["becomes"]
	}
	if becomes == "" || pod.Status.Message == becomes || !pod.DeletionTimestamp.IsZero() {
		return
	}
	before := pod.DeepCopy()
	container := corev1.ContainerStatus{Name: "c"}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	if becomes == isReady {
		ready.Status = corev1.ConditionTrue
		container.State.Running = &corev1.ContainerStateRunning{}
	} else {
		container.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, Message: becomes, Conditions: []corev1.PodCondition{ready}, ContainerStatuses: []corev1.ContainerStatus{container},
	}
	_ = c.Status().Patch(ctx, pod, client.MergeFrom(before)) // retried in the next round
}

// set sets what a Pod becomes from now on.
func (k *kubelet) set(name, becomes string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.becomes[name] = becomes
}
