package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

const (
	// moved is the namespace of the generated clusters, on both sides.
	moved = "fleet"
	// roundTrip is how much longer a request takes in the part of the group that measures a distant API server.
	roundTrip = 20 * time.Millisecond
	// longestMove bounds one move.
	longestMove = 2 * time.Hour
)

// movers has the results of each mover, in seconds.
type movers struct{ scute, clusterctl, floor, acknowledged []float64 }

// measureMoves moves generated clusters between two API servers without controllers of Cluster API, alternately with
// scute, with clusterctl's library and with the floor program.
func (b *bench) measureMoves(ctx context.Context) error {
	sizes, err := parseSizes(b.moveClusters)
	if err != nil {
		return err
	}
	perObject := make(map[int]float64)
	for i, clusters := range sizes {
		err := b.onSides(ctx, clusters, func(ctx context.Context, s *sides) error {
			b.say("%d clusters of %d objects", clusters, perCluster)
			if b.moveAlone {
				seconds, err := s.alone(ctx)
				perObject[clusters] = seconds / float64(clusters*perCluster)
				return err
			}
			if b.moveFar {
				return b.measureDistant(ctx, s)
			}
			took, requests, err := s.rounds(ctx, b.moveRounds, true)
			if err != nil {
				return err
			}
			scute := median(took.scute)
			perObject[clusters] = scute / float64(clusters*perCluster)
			b.figure(fmt.Sprintf("floor.ratio.%d", clusters), scute/median(took.floor), "x")
			b.figure(fmt.Sprintf("floor.acknowledged.ratio.%d", clusters), scute/median(took.acknowledged), "x")
			b.figure(fmt.Sprintf("clusterctl.ratio.%d", clusters), median(took.clusterctl)/scute, "x")
			b.figure(fmt.Sprintf("time.%d", clusters), scute, "s")
			b.figure(fmt.Sprintf("clusterctl.time.%d", clusters), median(took.clusterctl), "s")
			b.figure(fmt.Sprintf("floor.time.%d", clusters), median(took.floor), "s")
			b.figure(fmt.Sprintf("floor.acknowledged.time.%d", clusters), median(took.acknowledged), "s")
			if i == 0 {
				b.figure("requests_per_object", requests, "requests")
			}
			if i > 0 {
				return nil
			}
			if err := b.measureGuarded(ctx, s); err != nil || b.moveNear {
				return err
			}
			return b.measureDistant(ctx, s)
		})
		if err != nil {
			return err
		}
	}
	if last := sizes[len(sizes)-1]; last != sizes[0] {
		b.figure("growth", perObject[last]/perObject[sizes[0]], "x")
	}
	return nil
}

// alone moves the clusters once, with scute only.
func (s *sides) alone(ctx context.Context) (seconds float64, err error) {
	var took movers
	requests, err := s.scute(ctx, &took)
	if err != nil {
		return 0, err
	}
	used, err := usageOf(s.daemon.PID())
	if err != nil {
		return 0, err
	}
	stored, err := sizeOf(s.logDir)
	if err != nil {
		return 0, err
	}
	seconds = took.scute[0]
	for _, f := range []struct {
		name  string
		value float64
		unit  string
	}{
		{"time", seconds, "s"},
		{"requests_per_object", requests, "requests"},
		{"memory.peak", used.peak, "MiB"},
		{"cpu", used.cpu.Seconds(), "s"},
		{"log", stored, "MiB"},
	} {
		s.bench.figure(fmt.Sprintf("alone.%s.%d", f.name, s.clusters), f.value, f.unit)
	}
	return seconds, nil
}

// sizeOf returns the size of the files below a folder, in MiB.
func sizeOf(dir string) (mib float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			mib += float64(info.Size()) / (1 << 20)
		}
		return err
	})
	return mib, err
}

// measureGuarded counts the requests with policies that have the rules of Cluster API's webhooks. Everything that they
// may refuse is tried before a move.
func (b *bench) measureGuarded(ctx context.Context, s *sides) error {
	b.say("the same with policies that have the rules of Cluster API's webhooks")
	of := func(resource string, operations ...admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{Operations: operations, Rule: admissionv1.Rule{
			APIGroups: []string{coreGroup, controlPlaneGroup, bootstrapGroup, infrastructureGroup}, APIVersions: []string{"*"}, Resources: []string{resource},
		}}}
	}
	meta := metav1.ObjectMeta{Name: "guard"}
	for _, e := range []*end{s.blue, s.green} {
		policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
				of("*", admissionv1.Create, admissionv1.Update), of("clusters", admissionv1.Delete),
			}},
			Validations: []admissionv1.Validation{{Expression: "true"}},
		}}
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}}
		for _, o := range []client.Object{policy, binding} {
			if err := e.Side.Client().Create(ctx, o); err != nil {
				return err
			}
		}
	}
	took, requests, err := s.rounds(ctx, 1, false)
	if err != nil {
		return err
	}
	b.figure("requests_per_object.guarded", requests, "requests")
	b.figure("clusterctl.ratio.guarded", median(took.clusterctl)/median(took.scute), "x")
	for _, e := range []*end{s.blue, s.green} {
		for _, o := range []client.Object{&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta}, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta}} {
			if err := e.Side.Client().Delete(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) measureDistant(ctx context.Context, s *sides) error {
	b.say("the same with %s added to each round trip", roundTrip)
	if err := s.away(ctx); err != nil {
		return err
	}
	rounds := 1 // a round of clusterctl takes minutes
	if b.moveFar {
		rounds = b.moveRounds
	}
	took, _, err := s.rounds(ctx, rounds, true)
	if err != nil {
		return err
	}
	b.figure("floor.ratio.rtt20ms", median(took.scute)/median(took.floor), "x")
	b.figure("floor.acknowledged.ratio.rtt20ms", median(took.scute)/median(took.acknowledged), "x")
	b.figure("time.rtt20ms", median(took.scute), "s")
	b.figure("floor.time.rtt20ms", median(took.floor), "s")
	b.figure("floor.acknowledged.time.rtt20ms", median(took.acknowledged), "s")
	if b.moveFar {
		return nil
	}
	b.figure("clusterctl.ratio.rtt20ms", median(took.clusterctl)/median(took.scute), "x")
	b.figure("clusterctl.time.rtt20ms", median(took.clusterctl), "s")
	return nil
}

func parseSizes(list string) ([]int, error) {
	var sizes []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-move-clusters %q: want numbers with commas between them, for example 10,50,200", list)
		}
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes), nil
}

// end is one of the two management clusters.
type end struct {
	*scuted.Installation
	client      dynamic.Interface // the administrator's
	far         dynamic.Interface // the same, with the longer round trip if there is one
	kubeconfig  string            // the path of the administrator's kubeconfig, for clusterctl
	controllers *controllers
}

// sides are the two management clusters. Between two rounds the clusters are on blue.
type sides struct {
	bench       *bench
	bed         *testbed.Bed
	blue, green *end
	daemon      *scuted.Daemon
	logDir      string
	clusters    int
	moves       int // made by scute
	delays      []*delayed
}

// onSides calls do with two new API servers. scute is installed on both and runs on blue, where the clusters are.
func (b *bench) onSides(ctx context.Context, clusters int, do func(context.Context, *sides) error) (err error) {
	bed, err := testbed.Start(ctx, testbed.Options{Bare: true, Audit: true, Log: b.progress})
	if err != nil {
		return err
	}
	s := &sides{bench: b, bed: bed, clusters: clusters}
	defer func() {
		if err != nil && ctx.Err() == nil {
			bed.Keep()
		}
		err = errors.Join(err, s.close())
	}()
	if s.blue, err = b.newEnd(ctx, bed.Side("blue")); err != nil {
		return err
	}
	if s.green, err = b.newEnd(ctx, bed.Side("green")); err != nil {
		return err
	}
	if err := fill(ctx, s.blue.client, moved, clusters); err != nil {
		return err
	}
	if s.logDir, err = s.blue.NewLogDir(); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	return do(ctx, s)
}

func (b *bench) newEnd(ctx context.Context, side *testbed.Side) (*end, error) {
	in, err := scuted.Install(ctx, side, b.programs)
	if err != nil {
		return nil, err
	}
	e := &end{Installation: in, kubeconfig: side.KubeconfigPath()}
	if e.client, err = dynamic.NewForConfig(side.Config()); err != nil {
		return nil, err
	}
	e.far = e.client
	if err := side.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: moved}}); err != nil {
		return nil, err
	}
	e.controllers, err = startControllers(context.WithoutCancel(ctx), e.client, moved)
	return e, err
}

// start starts the daemon, and creates the Secret with the target's kubeconfig.
func (s *sides) start(ctx context.Context) (err error) {
	o := scuted.DaemonOptions{LogDir: s.logDir}
	if s.bench.moveAlone {
		// scuted reads the limit of its container, 512 MiB in the chart. Its memory is measured with the resulting
		// value.
		o.Env = []string{"GOMEMLIMIT=460MiB"}
	}
	if s.daemon, err = s.blue.Start(o); err != nil {
		return err
	}
	return s.blue.PutTarget(ctx, moved, s.green.Installation)
}

func (s *sides) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if s.daemon != nil {
		errs = append(errs, s.daemon.Stop(ctx))
	}
	for _, e := range []*end{s.blue, s.green} {
		if e != nil && e.controllers != nil {
			e.controllers.close()
		}
	}
	for _, d := range s.delays {
		errs = append(errs, d.close())
	}
	return errors.Join(append(errs, s.bed.Stop())...)
}

// away adds a longer round trip to both API servers, for everything except the controllers.
func (s *sides) away(ctx context.Context) error {
	if err := s.daemon.Stop(ctx); err != nil {
		return err
	}
	for _, e := range []*end{s.blue, s.green} {
		d, err := delay(ctx, e.Side.Config().Host, roundTrip)
		if err != nil {
			return err
		}
		s.delays = append(s.delays, d)
		near := []byte(e.Side.Config().Host)
		config := rest.CopyConfig(e.Side.Config())
		config.Host = d.host()
		if e.far, err = dynamic.NewForConfig(config); err != nil {
			return err
		}
		e.Target = bytes.ReplaceAll(e.Target, near, []byte(d.host()))
		admin := filepath.Join(e.Side.Logs(), "distant.kubeconfig")
		for to, from := range map[string]string{e.Kubeconfig: e.Kubeconfig, admin: e.kubeconfig} {
			content, err := os.ReadFile(from)
			if err != nil {
				return fmt.Errorf("reading a kubeconfig: %w", err)
			}
			if err := os.WriteFile(to, bytes.ReplaceAll(content, near, []byte(d.host())), 0o600); err != nil {
				return fmt.Errorf("writing a kubeconfig: %w", err)
			}
		}
		e.kubeconfig = admin
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: moved, Name: s.green.Side.Name()}}
	if err := s.blue.Side.Client().Delete(ctx, secret); err != nil {
		return err
	}
	return s.start(ctx)
}

// rounds moves the clusters there with scute and back with clusterctl, and then there and back with the floor program,
// with and without pauses. If only the longer round trip is measured, clusterctl is left out, and the floor program
// moves them back.
func (s *sides) rounds(ctx context.Context, n int, floor bool) (took movers, perObject float64, err error) {
	var requests []float64
	for range n {
		made, err := s.scute(ctx, &took)
		if err != nil {
			return took, 0, err
		}
		requests = append(requests, made)
		if s.bench.moveFar {
			if err := s.floor(ctx, &took, s.green, s.blue); err != nil {
				return took, 0, err
			}
		} else if err := s.clusterctl(ctx, &took); err != nil {
			return took, 0, err
		}
		for _, way := range [][2]*end{{s.blue, s.green}, {s.green, s.blue}} {
			if !floor {
				break
			}
			if err := s.floor(ctx, &took, way[0], way[1]); err != nil {
				return took, 0, err
			}
		}
		for _, way := range [][2]*end{{s.blue, s.green}, {s.green, s.blue}} {
			if !floor {
				break
			}
			if err := s.acknowledged(ctx, &took, way[0], way[1]); err != nil {
				return took, 0, err
			}
		}
	}
	return took, median(requests), nil
}

// timed measures a move of all clusters. It first waits until the controllers have settled.
func (s *sides) timed(ctx context.Context, what string, from, to *end, move func(context.Context) error) (seconds float64, err error) {
	if err := errors.Join(from.controllers.settled(ctx, s.clusters), to.controllers.settled(ctx, 0)); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, longestMove)
	defer cancel()
	began := time.Now()
	if err := move(ctx); err != nil {
		return 0, fmt.Errorf("moving with %s: %w", what, err)
	}
	seconds = time.Since(began).Seconds()
	s.bench.say("%s: %.1f s", what, seconds)
	return seconds, nil
}

// scute moves all clusters with scute, and returns the number of its requests per object.
func (s *sides) scute(ctx context.Context, took *movers) (perObject float64, err error) {
	s.moves++
	m := scuted.NewMove(moved, fmt.Sprintf("bench-%d", s.moves), s.green.Installation)
	m.Spec.Selection.All = true
	// The controllers share the cores with everything else here, so the defaults are too short for a large move.
	patience := v1alpha1.Duration{Duration: longestMove}
	m.Spec.Timeouts = v1alpha1.MoveTimeouts{Acknowledge: &patience, Create: &patience, Resume: &patience}
	var from [2]int64
	logs := [2]string{s.blue.Side.AuditLog(), s.green.Side.AuditLog()}
	for i, log := range logs {
		if from[i], err = auditSize(log); err != nil {
			return 0, err
		}
	}
	seconds, err := s.timed(ctx, "scute", s.blue, s.green, func(ctx context.Context) error {
		if err := s.blue.Create(ctx, m); err != nil {
			return err
		}
		var phase mover.Phase
		end, err := s.blue.Wait(ctx, moved, m.Name, func(m *v1alpha1.Move) bool {
			if m.Status.Phase != phase {
				phase = m.Status.Phase
				s.bench.say("%s", phase)
			}
			return scuted.Over(m)
		})
		if err == nil && end.Status.Phase != mover.PhaseSucceeded {
			return fmt.Errorf("it is %s: %s: %+v", end.Status.Phase, end.Status.Message, end.Status.Findings)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	took.scute = append(took.scute, seconds)
	used, err := usageOf(s.daemon.PID())
	if err != nil {
		return 0, err
	}
	s.bench.say("scuted: %.0f MiB at most, %s of CPU since its start", used.peak, used.cpu)
	made := 0
	for i, log := range logs {
		r, err := requestsSince(log, from[i])
		if err != nil {
			return 0, err
		}
		side := []string{"blue", "green"}[i]
		s.bench.say("%s: %s", side, r)
		s.bench.say("%s, for each object: %s", side, r.perObject(s.clusters*perCluster))
		made += r.other
	}
	return float64(made) / float64(s.clusters*perCluster), nil
}

func (s *sides) clusterctl(ctx context.Context, took *movers) error {
	seconds, err := s.timed(ctx, "clusterctl", s.green, s.blue, func(ctx context.Context) error {
		from := cluster.New(cluster.Kubeconfig{Path: s.green.kubeconfig}, nil)
		return from.ObjectMover().Move(ctx, moved, cluster.New(cluster.Kubeconfig{Path: s.blue.kubeconfig}, nil), false)
	})
	took.clusterctl = append(took.clusterctl, seconds)
	return err
}

func (s *sides) floor(ctx context.Context, took *movers, from, to *end) error {
	seconds, err := s.timed(ctx, "the floor program", from, to, func(ctx context.Context) error {
		for _, e := range []*end{s.blue, s.green} {
			e.controllers.close()
			e.controllers = nil
		}
		began := time.Now()
		err := moveAtFloor(ctx, from.far, to.far, moved)
		took.floor = append(took.floor, time.Since(began).Seconds())
		return err
	})
	if err != nil {
		return err
	}
	s.bench.say("of it, the move itself: %.1f s of %.1f s", took.floor[len(took.floor)-1], seconds)
	for _, e := range []*end{s.blue, s.green} {
		if e.controllers, err = startControllers(context.WithoutCancel(ctx), e.client, moved); err != nil {
			return err
		}
	}
	return nil
}

// acknowledged moves all clusters with the floor program with pauses.
func (s *sides) acknowledged(ctx context.Context, took *movers, from, to *end) error {
	seconds, err := s.timed(ctx, "the floor program with pauses", from, to, func(ctx context.Context) error {
		return moveAcknowledged(ctx, from, to, moved, s.clusters)
	})
	took.acknowledged = append(took.acknowledged, seconds)
	return err
}
