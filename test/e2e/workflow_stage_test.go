package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/test/scuted"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
)

// stage is a namespace in which Workflows play, with an account that may do what they need, and a kubelet.
type stage struct {
	ns, account string
	admin       client.Client
	kubelet     *kubelet
	nats        string
	log         *eventlog.Log // opened at the first decision
}

// workflowStage makes a namespace on blue, with a ServiceAccount that may change ConfigMaps and Pods in it.
func workflowStage(ctx context.Context, t *testing.T, ns string) *stage {
	t.Helper()
	admin, err := shared.blue.Client()
	must(t, err)
	s := &stage{ns: ns, account: "runs", admin: admin}
	all := shared.blue.Side.Client()
	must(t, all.Create(ctx, namespace(ns)))
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
		must(t, all.Create(ctx, o))
	}
	s.kubelet = startKubelet(t, admin, ns)
	return s
}

// create makes a Workflow of a spec in YAML.
func (s *stage) create(ctx context.Context, t *testing.T, name, spec string) {
	t.Helper()
	w, err := scuted.NewWorkflow(s.ns, name, s.account, spec)
	must(t, err)
	must(t, s.admin.Create(ctx, w))
}

func (s *stage) until(ctx context.Context, t *testing.T, name string, done func(*v1alpha1.Workflow) bool) *v1alpha1.Workflow {
	t.Helper()
	w, err := shared.blue.WaitWorkflow(ctx, s.ns, name, done)
	must(t, err)
	return w
}

// run makes a Workflow and waits until it rests in a phase.
func (s *stage) run(ctx context.Context, t *testing.T, name string, phase v1alpha1.RunPhase, spec string) *v1alpha1.Workflow {
	t.Helper()
	s.create(ctx, t, name, spec)
	return s.rests(ctx, t, name, phase)
}

func (s *stage) rests(ctx context.Context, t *testing.T, name string, phase v1alpha1.RunPhase) *v1alpha1.Workflow {
	t.Helper()
	w := s.until(ctx, t, name, scuted.Rests)
	if w.Status.Phase != phase {
		t.Fatalf("%s: phase %s, want %s: %s\n%s", name, w.Status.Phase, phase, w.Status.Message, scuted.Tasks(w))
	}
	return w
}

// stand checks how tasks stand: "name=Phase name=Phase ...".
func stand(t *testing.T, w *v1alpha1.Workflow, want string) {
	t.Helper()
	for _, pair := range strings.Fields(want) {
		name, phase, _ := strings.Cut(pair, "=")
		if got := scuted.TaskOf(w, name).Phase; string(got) != phase {
			t.Errorf("%s: task %s is %q, want %s\n%s", w.Name, name, got, phase, scuted.Tasks(w))
		}
	}
}

// exists says whether an object is there.
func (s *stage) exists(ctx context.Context, t *testing.T, o client.Object, name string) bool {
	t.Helper()
	err := s.admin.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: name}, o)
	if !apierrors.IsNotFound(err) {
		must(t, err)
	}
	return err == nil
}

// maps checks which ConfigMaps are there: "name !name ...".
func (s *stage) maps(ctx context.Context, t *testing.T, want string) {
	t.Helper()
	for _, name := range strings.Fields(want) {
		wanted := !strings.HasPrefix(name, "!")
		if got := s.exists(ctx, t, &corev1.ConfigMap{}, strings.TrimPrefix(name, "!")); got != wanted {
			t.Errorf("ConfigMap %s: there is %v, want %v", name, got, wanted)
		}
	}
}

// command is an operator's word, written to the log as scutectl does.
func (s *stage) command(ctx context.Context, t *testing.T, name string, in workflow.Input) {
	t.Helper()
	if s.log == nil {
		log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: s.nats})
		must(t, err)
		s.log = log
		t.Cleanup(func() { log.Close() })
	}
	w := s.until(ctx, t, name, func(w *v1alpha1.Workflow) bool { return w.Status.RunID != "" })
	must(t, (&runner.Runner{Log: s.log}).Command(ctx, w.Status.RunID, "user/e2e", in))
}

// kubelet gives the Pods of a namespace the phase that the label "becomes" names, unless a test has said otherwise. The
// real controllers of the bed have no kubelet.
type kubelet struct {
	mu      sync.Mutex
	becomes map[string]corev1.PodPhase
}

func startKubelet(t *testing.T, c client.Client, ns string) *kubelet {
	k := &kubelet{becomes: make(map[string]corev1.PodPhase)}
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
	phase, told := k.becomes[pod.Name]
	k.mu.Unlock()
	if !told {
		phase = corev1.PodPhase(pod.Labels["becomes"])
	}
	if phase == "" || pod.Status.Phase == phase || !pod.DeletionTimestamp.IsZero() {
		return
	}
	before := pod.DeepCopy()
	pod.Status.Phase = phase
	_ = c.Status().Patch(ctx, pod, client.MergeFrom(before)) // tried again at the next look
}

// set says what a Pod becomes from now on.
func (k *kubelet) set(name string, phase corev1.PodPhase) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.becomes[name] = phase
}
